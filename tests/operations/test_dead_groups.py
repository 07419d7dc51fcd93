"""Dead jobs by group: counts are exact whatever moves a job, and whether its change has been added up or not."""

import threading
from datetime import UTC, timedelta

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobs import conf, dead_count, dead_group, dead_groups, discard_dead, retry_dead
from django_jobs.exceptions import InvalidOption
from django_jobs.fingerprint import fingerprint
from django_jobs.models import DeadGroup, DeadGroupChange, DeadGroupHour, DeadJob
from django_jobs.operations.dead_group_counts import fold_changes
from django_jobs.operations.dead_groups import new_group_count
from tests.engines.support import in_threads
from tests.operations.handlers import urgent
from tests.operations.support import bury, committing, on_postgresql, seen_elsewhere
from tests.operations.triage import ago, die, fold, no_changes

pytestmark = [committing, pytest.mark.usefixtures("no_changes")]
__all__ = ["no_changes"]

BUGS = [
    ("send_invoice", "ValueError", "no such invoice {}"),
    ("send_invoice", "requests.exceptions.ReadTimeout", "HTTPSConnectionPool(host='api{}.example.com'): timed out"),
    ("sync_contact", "ValueError", "no such invoice {}"),
]


def counts(**terms):
    return {(group.type, group.fingerprint): group.count for group in dead_groups(**terms).groups}


def truth():
    found = {}
    for key in DeadJob.objects.values_list("type", "fingerprint"):
        found[key] = found.get(key, 0) + 1
    return found


@pytest.fixture(params=["unfolded", "folded", "half folded"])
def settle(request):
    """Adds up nothing, everything, or everything before the last of two steps."""

    def settle(step):
        if request.param == "folded" or (request.param == "half folded" and step == 1):
            fold()

    return settle


def failure(number):
    type_name, error_type, text = BUGS[number % 3]
    message = text.format(number)
    group = fingerprint(type_name, error_type, message)
    return DeadJob(type=type_name, queue="q", payload={}, max_attempts=1, reason="exhausted", fingerprint=group)


def test_twenty_thousand_failures_of_three_bugs_are_three_groups():
    DeadJob.objects.bulk_create(map(failure, range(20_000)), batch_size=1000)
    for _ in range(2):
        assert [group.count for group in dead_groups().groups] == [6667, 6667, 6666]
        fold()
    assert not DeadGroupChange.objects.exists()


def test_counts_follow_whatever_moves_a_job(settle):
    jobs = die(6, type="a") + die(3, type="b", fingerprint="1:bb")
    settle(1)
    retry_dead([jobs[0].id, jobs[6].id])
    discard_dead(jobs[1].id)
    DeadJob.objects.filter(id=jobs[2].id).delete()
    settle(2)
    assert counts() == truth()
    assert dict(counts()) == {("a", "1:0123456789abcdef"): 3, ("b", "1:bb"): 2}
    assert dead_count() == 5
    assert dead_count(type="b") == 2


def test_a_job_that_dies_in_a_worker_is_counted(settle):
    urgent.enqueue(text="a")
    bury()
    settle(1)
    (group,) = dead_groups().groups
    assert (group.type, group.fingerprint, group.count) == ("operations.urgent", "1:00", 1)
    assert (group.error_type, group.error_summary, group.reason) == ("ValueError", "no such invoice", "exhausted")
    assert group.sample_id == DeadJob.objects.get().id


def test_a_death_that_is_rolled_back_is_not_counted(settle):
    with transaction.atomic():
        die(2)
        transaction.set_rollback(True)
    settle(1)
    assert dead_groups().groups == ()


def test_a_group_whose_jobs_are_gone_is_not_shown_but_remembered():
    (job,) = die(failed_at=ago(days=3))
    fold()
    discard_dead(job.id)
    assert dead_groups().groups == ()
    assert dead_group(job.type, job.fingerprint) is None
    fold()
    die(failed_at=ago(hours=1))
    (group,) = dead_groups().groups
    assert (group.count, group.first_seen) == (1, job.failed_at)


def test_first_and_last_seen_are_those_of_all_deaths(settle):
    times = [ago(hours=hours) for hours in (30, 20, 10)]
    die(failed_at=times[1])
    settle(1)
    die(failed_at=times[0])
    die(failed_at=times[2])
    settle(2)
    (group,) = dead_groups().groups
    assert (group.first_seen, group.last_seen) == (times[0], times[2])


def test_deaths_are_charted_by_hour_whatever_became_of_the_jobs(settle):
    this_hour = timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    jobs = die(3, failed_at=this_hour - timedelta(hours=2, minutes=-10)) + die(2, failed_at=this_hour)
    die(failed_at=this_hour - timedelta(hours=30))
    settle(1)
    discard_dead(jobs[0].id)
    settle(2)
    (group,) = dead_groups(hours=4).groups
    # Robust against the hour ending in mid-test.
    assert [count for count in group.per_hour if count] == [3, 2]
    assert len(group.per_hour) == 4
    assert sum(dead_groups(hours=168).groups[0].per_hour) == 6


def test_groups_come_largest_latest_or_newest_first_and_page_by_page():
    die(3, type="big", failed_at=ago(hours=5))
    die(1, type="late", failed_at=ago(hours=1))
    die(2, type="mid", failed_at=ago(hours=3))
    die(1, type="mid", failed_at=ago(hours=9))
    die(1, type="mid", failed_at=ago(hours=4))

    def types(**terms):
        return [group.type for group in dead_groups(**terms).groups]

    assert types() == ["mid", "big", "late"]
    fold()
    assert types(order="last_seen") == ["late", "mid", "big"]
    assert types(order="first_seen") == ["late", "big", "mid"]
    assert (types(limit=2), types(limit=2, offset=2)) == (["mid", "big"], ["late"])
    assert [dead_groups(limit=2, offset=offset).more for offset in (0, 2)] == [True, False]


def test_groups_are_found_by_type_and_by_a_part_of_the_error(settle):
    die(type="a", error_type="KeyError", error_summary="'100%_sure'", fingerprint="1:aa")
    settle(1)
    die(type="b", error_summary="No route to host", fingerprint="1:bb")
    assert list(counts(type="a")) == [("a", "1:aa")]
    assert list(counts(error="ROUTE")) == [("b", "1:bb")]
    assert list(counts(error="keyerror")) == [("a", "1:aa")]
    assert list(counts(error="100%_")) == [("a", "1:aa")]
    assert counts(error="100__sure") == {}
    assert counts(type="b", error="sure") == {}


def test_a_group_is_new_if_this_release_saw_it_first():
    with override_settings(DJANGO_JOBS={"RELEASE": "41"}):
        die(type="old")
        fold()
    with override_settings(DJANGO_JOBS={"RELEASE": "42"}):
        die(type="old")
        die(type="fresh")
        for _ in range(2):
            assert {group.type: group.is_new for group in dead_groups().groups} == {"old": False, "fresh": True}
            assert {group.first_release for group in dead_groups().groups} == {"41", "42"}
            fold()
    assert conf.get_settings().release == ""
    assert not any(group.is_new for group in dead_groups().groups)


def test_a_group_tells_what_its_newest_jobs_show():
    die(3, tenant="acme", attempts=5, failed_at=ago(hours=2))
    die(2, tenant="umbrella", attempts=1, reason="timeout", queue="urgent", failed_at=ago(hours=1))
    (last,) = die(tenant="acme", errors=[{"attempt": 1, "traceback": "Traceback: here"}])
    detail = dead_group(last.type, last.fingerprint)
    assert (detail.group.count, detail.looked_at, detail.is_partial) == (6, 6, False)
    assert detail.tenants == {"acme": 4, "umbrella": 2}
    assert detail.queues == {"default": 4, "urgent": 2}
    assert detail.reasons == {"exhausted": 4, "timeout": 2}
    assert detail.attempts == {5: 4, 1: 2}
    assert list(detail.tenants) == ["acme", "umbrella"]
    assert (detail.sample.id, detail.traceback) == (last.id, "Traceback: here")


def test_of_a_large_group_the_newest_thousand_are_looked_at(monkeypatch):
    monkeypatch.setattr("django_jobs.operations.dead_groups.SAMPLE", 10)
    die(5, tenant="old", failed_at=ago(hours=2))
    die(10, tenant="new")
    (group,) = dead_groups().groups
    detail = dead_group(group.type, group.fingerprint)
    assert (detail.tenants, detail.looked_at, detail.is_partial) == ({"new": 10}, 10, True)


def test_a_group_without_errors_has_no_traceback():
    (job,) = die(errors=[])
    assert dead_group(job.type, job.fingerprint).traceback == ""


def test_no_page_counts_dead_jobs_or_takes_many_queries():
    for number in range(30):
        die(2, type=f"type-{number}")
    with CaptureQueriesContext(connection) as queries:
        dead_groups()
        dead_group("type-1", "1:0123456789abcdef")
        dead_count()
    assert len(queries) <= 15
    for query in queries:
        assert "DISTINCT" not in query["sql"].upper()
        if "COUNT(" in query["sql"].upper():
            assert "dead_job" not in query["sql"]


@pytest.mark.parametrize(
    ("terms", "named"),
    [({"order": "id; --"}, "order"), ({"hours": 0}, "hours"), ({"hours": 169}, "hours"), ({"limit": 0}, "limit")],
)
def test_what_cannot_be_shown_is_refused(terms, named):
    with pytest.raises(InvalidOption, match=named):
        dead_groups(**terms)


@on_postgresql
def test_changes_are_added_up_once_however_many_processes_do_it(monkeypatch):
    monkeypatch.setattr("django_jobs.operations.dead_group_counts.BATCH", 7)
    for number in range(5):
        die(100, type=f"type-{number}")
    expected = truth()
    stop = threading.Event()

    def act(number):
        if number == 3:
            for job_id in list(DeadJob.objects.values_list("id", flat=True)[:200]):
                discard_dead(job_id)
                assert sum(counts().values()) >= 300
            stop.set()
        else:
            while not stop.is_set() or DeadGroupChange.objects.exists():
                fold_changes()

    in_threads(act, 4)
    assert counts() == truth()
    assert expected != truth()
    assert {(g.type, g.fingerprint): g.count for g in DeadGroup.objects.filter(count__gt=0)} == truth()
    assert sum(DeadGroupHour.objects.values_list("count", flat=True)) == 500


@on_postgresql
def test_a_death_waits_for_nobody_who_adds_up():
    die(3)
    with transaction.atomic():
        fold_changes()
        seen_elsewhere(lambda: die(3))
        seen_elsewhere(lambda: discard_dead(DeadJob.objects.values_list("id", flat=True)[0]))
    assert counts() == truth()


def test_changes_left_behind_by_an_emptied_table_are_healed_where_the_trigger_writes_them():
    die(2)
    fold()
    if connection.vendor == "sqlite":
        DeadGroupChange.objects.create(
            type="noop", fingerprint="1:0123456789abcdef", change=-1, failed_at=timezone.now()
        )
        fold()
    assert counts() == truth()


def test_new_groups_are_counted_by_their_release_folded_or_not(settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"RELEASE": "r1"}
    die(3, fingerprint="1:old")
    fold()
    assert new_group_count() == 1
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"RELEASE": "r2"}
    assert new_group_count() == 0
    die(2, fingerprint="1:old")
    die(2, fingerprint="1:new")
    gone = die(1, fingerprint="1:gone")
    discard_dead([job.id for job in gone])
    assert new_group_count() == 1
    fold()
    assert new_group_count() == 1
    assert new_group_count() == sum(group.is_new for group in dead_groups().groups)


def test_without_a_release_nothing_is_said_to_be_new():
    die()
    assert new_group_count() is None
