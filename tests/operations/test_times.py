"""When a job may run: decided by the database's clock, whatever the time zone of the project."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone as django_timezone

from django_jobs import clock, get_job
from django_jobs.engines import stand_alone, statements
from django_jobs.engines.config import EngineConfig
from django_jobs.exceptions import InvalidOption
from django_jobs.models import Job
from tests.factories import DeadJobFactory
from tests.operations.handlers import note
from tests.operations.support import on_postgresql, start, texts
from tests.payloads import Moment

pytestmark = pytest.mark.django_db

NEW_YORK = ZoneInfo("America/New_York")
HOUR = timedelta(hours=1)


def run_ats():
    return list(Job.objects.order_by("id").values_list("run_at", flat=True))


def both_ways(**options):
    """The job of ``enqueue`` and of ``enqueue_many``."""
    handle = note.using(**options)
    return [handle.enqueue(text="a"), *handle.enqueue_many([{"text": "a"}])]


def test_a_job_without_a_time_is_pending_now():
    before = clock.now()
    assert [job.status for job in both_ways()] == ["pending", "pending"]
    for run_at in run_ats():
        assert abs(run_at - before) < timedelta(seconds=5)


def test_a_delay_counts_from_now():
    before = clock.now()
    assert [job.status for job in both_ways(delay=HOUR)] == ["scheduled", "scheduled"]
    for run_at in run_ats():
        assert abs(run_at - HOUR - before) < timedelta(seconds=5)


def test_no_delay_is_now():
    assert [job.status for job in both_ways(delay=timedelta(0))] == ["pending", "pending"]


@pytest.mark.parametrize(
    "run_at",
    [
        datetime(2031, 7, 1, 8, 30, 0, 123456, tzinfo=UTC),
        datetime(2031, 7, 1, 8, 30, tzinfo=NEW_YORK),
        datetime(2031, 11, 2, 1, 30, tzinfo=NEW_YORK, fold=0),
        datetime(2031, 11, 2, 1, 30, tzinfo=NEW_YORK, fold=1),
        datetime(2031, 7, 1, 8, 30, tzinfo=timezone(timedelta(hours=5, minutes=53, seconds=28))),
        datetime(8999, 12, 31, 23, 59, tzinfo=UTC),
        Moment(2031, 7, 1, 8, 30, tzinfo=UTC),
    ],
    ids=lambda value: value.isoformat(),
)
def test_run_at_is_kept_to_the_microsecond(run_at):
    assert [job.status for job in both_ways(run_at=run_at)] == ["scheduled", "scheduled"]
    # Python calls an ambiguous wall time and its own instant in another zone unequal.
    assert run_ats() == [run_at.astimezone(UTC)] * 2


@pytest.mark.parametrize("run_at", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 7, 1, tzinfo=NEW_YORK)], ids=str)
def test_a_past_run_at_is_pending(run_at):
    assert [job.status for job in both_ways(run_at=run_at)] == ["pending", "pending"]
    assert run_ats() == [run_at, run_at]


def test_a_naive_run_at_is_refused():
    with pytest.raises(InvalidOption, match=r"no time zone.*make_aware"):
        note.using(run_at=datetime(2031, 1, 1))  # noqa: DTZ001


def test_run_at_and_delay_together_are_refused():
    now = django_timezone.now()
    with pytest.raises(InvalidOption, match="not both"):
        note.using(run_at=now, delay=HOUR)
    with pytest.raises(InvalidOption, match="not both"):
        note.using(run_at=now).using(delay=HOUR)
    assert note.using(run_at=now).using(run_at=None, delay=HOUR).enqueue(text="a").status == "scheduled"


@pytest.mark.parametrize(
    "delay", [timedelta(microseconds=-1), timedelta.max, timedelta.min, 60, "60", None.__class__], ids=repr
)
def test_a_delay_that_is_no_pause_is_refused(delay):
    with pytest.raises(InvalidOption, match="delay must be a timedelta"):
        note.using(delay=delay)


@pytest.mark.parametrize(
    "run_at",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime(1969, 12, 31, tzinfo=UTC),
    ],
    ids=str,
)
def test_a_run_at_that_no_database_can_give_back_is_refused(run_at):
    with pytest.raises(InvalidOption, match="1970 and 9000"):
        note.using(run_at=run_at)


@pytest.mark.parametrize("run_at", [HOUR, 1893456000, "2031-01-01T00:00:00Z", datetime(2031, 1, 1).date()], ids=repr)  # noqa: DTZ001
def test_a_run_at_of_another_type_is_refused(run_at):
    with pytest.raises(InvalidOption, match="run_at must be a datetime"):
        note.using(run_at=run_at)


@pytest.mark.parametrize("use_tz", [True, False], ids=["USE_TZ", "no USE_TZ"])
@pytest.mark.parametrize("zone", [NEW_YORK, UTC], ids=str)
@pytest.mark.parametrize(
    "way", [lambda handle: handle.enqueue(), lambda handle: handle.enqueue_many([{}])], ids=["one", "many"]
)
def test_no_project_time_zone_shifts_the_instant(settings, use_tz, zone, way):
    run_at = datetime(2031, 7, 1, 8, tzinfo=zone)
    settings.TIME_ZONE = "America/New_York"
    settings.USE_TZ = use_tz
    refused = False
    try:
        with transaction.atomic():
            way(note.using(run_at=run_at))
    except (TypeError, ValueError):
        refused = not use_tz  # the system check E008 says so before
    settings.USE_TZ = True
    settings.TIME_ZONE = "UTC"
    assert run_ats() == ([] if refused else [run_at])


def test_a_local_time_zone_changes_nothing():
    with django_timezone.override("Asia/Kolkata"):
        both_ways(delay=HOUR)
    for run_at in run_ats():
        assert abs(run_at - HOUR - clock.now()) < timedelta(seconds=5)


@contextmanager
def database_time_zone(name):
    """As with ``TIME_ZONE`` in ``DATABASES``."""
    before = connection.settings_dict["TIME_ZONE"]
    try:
        _set_time_zone(name)
        yield
    finally:
        _set_time_zone(before)


def _set_time_zone(name):
    wrapper = connections["default"]
    wrapper.settings_dict["TIME_ZONE"] = name
    for cached in ("timezone", "timezone_name"):
        vars(wrapper).pop(cached, None)
    wrapper.ensure_timezone()


@on_postgresql
@pytest.mark.parametrize("days", [90, 180, 270])
def test_a_day_of_a_delay_has_24_hours_whatever_the_clock_of_the_session_does(days):
    """One of these ends on the other side of a change of the clocks, whenever the test runs."""
    delay = timedelta(days=days, microseconds=1)
    with database_time_zone("America/New_York"):
        both_ways(delay=delay)
        note.using(delay=delay, idempotency_key="k").enqueue(text="a")
        dead = DeadJobFactory(payload={"text": "a"})
        statements("default").requeue_dead(connection, [dead.pk], delay)
    assert len(run_ats()) == 4
    for run_at in run_ats():
        assert abs(run_at - delay - clock.now()) < timedelta(seconds=5)


@on_postgresql
def test_maintenance_has_its_times_in_utc_whatever_the_zone_of_the_database():
    """Two times of one zone are compared by the wall clock, which shows an hour of the autumn twice."""

    def ask(alone):
        if alone:
            stand_alone(EngineConfig(alias="default"), HOUR)
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT current_setting('TimeZone'), statement_timestamp()")
            zone, now = cursor.fetchone()
        return zone, str(now.tzinfo)

    with database_time_zone("America/New_York"):
        assert start(ask, False).result(timeout=20) == ("America/New_York", "America/New_York")
        assert start(ask, True).result(timeout=20) == ("UTC", "UTC")


@on_postgresql
@pytest.mark.parametrize("skew", [timedelta(days=-1), timedelta(days=1)], ids=["slow", "fast"])
def test_a_wrong_clock_on_this_machine_decides_nothing(monkeypatch, skew):
    real_now = clock.now
    monkeypatch.setattr(clock, "now", lambda: real_now() + skew)
    assert [job.status for job in both_ways()] == ["pending", "pending"]
    assert [job.status for job in both_ways(delay=HOUR)] == ["scheduled", "scheduled"]
    assert [job.status for job in both_ways(run_at=real_now() + HOUR)] == ["scheduled", "scheduled"]
    assert [job.status for job in both_ways(run_at=real_now() - HOUR)] == ["pending", "pending"]


@on_postgresql
def test_in_a_long_transaction_now_is_not_its_beginning():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")  # a transaction that goes on for a while, which is what is tried
        both_ways()
        cursor.execute("SELECT min(run_at) - now() FROM django_jobs_job")
        assert cursor.fetchone()[0] >= timedelta(seconds=0.05)


def test_a_scheduled_job_tells_its_next_attempt():
    run_at = datetime(2031, 7, 1, 8, tzinfo=NEW_YORK)
    job = note.using(run_at=run_at).enqueue(text="a")
    assert get_job(job.id).next_attempt_at == run_at
    assert texts() == ["a"]
