import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from django_jobs import clock
from django_jobs.clock import DatabaseClock


def test_now_is_aware_and_in_utc():
    assert clock.now().utcoffset() == timedelta(0)


def test_milliseconds_are_those_of_now():
    assert abs(clock.milliseconds() - clock.now().timestamp() * 1000) < 1000


def test_monotonic_does_not_go_back():
    assert clock.monotonic() <= clock.monotonic()


def test_a_database_clock_without_a_sample_is_this_machines_clock():
    assert abs(DatabaseClock().now() - clock.now()) < timedelta(seconds=1)


def test_a_database_clock_carries_its_sample_on(monkeypatch):
    database = DatabaseClock()
    monkeypatch.setattr(clock, "monotonic", lambda: 100.0)
    database.sample(datetime(2030, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(clock, "monotonic", lambda: 102.5)
    assert database.now() == datetime(2030, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)
    assert database.milliseconds() == 1_893_456_002_500


def test_a_sample_in_another_zone_is_read_in_utc(monkeypatch):
    database = DatabaseClock()
    monkeypatch.setattr(clock, "monotonic", lambda: 0.0)
    database.sample(datetime(2030, 1, 1, 5, tzinfo=timezone(timedelta(hours=5))))
    assert database.now().isoformat() == "2030-01-01T00:00:00+00:00"


def test_a_later_sample_replaces_the_first(monkeypatch):
    database = DatabaseClock()
    monkeypatch.setattr(clock, "monotonic", lambda: 0.0)
    database.sample(datetime(2030, 1, 2, tzinfo=UTC))
    database.sample(datetime(2030, 1, 1, tzinfo=UTC))
    assert database.now().day == 1


def test_a_sample_tells_how_far_the_database_has_been_set_ahead(monkeypatch):
    database = DatabaseClock()
    monkeypatch.setattr(clock, "monotonic", lambda: 100.0)
    assert database.sample(datetime(2030, 1, 1, tzinfo=UTC)) == timedelta(0)
    monkeypatch.setattr(clock, "monotonic", lambda: 160.0)
    assert database.sample(datetime(2030, 1, 1, 0, 5, tzinfo=UTC)) == timedelta(minutes=4)


def test_a_naive_sample_is_refused():
    with pytest.raises(ValueError, match="aware"):
        DatabaseClock().sample(datetime(2030, 1, 1, tzinfo=None))  # noqa: DTZ001


def test_only_one_module_reads_a_clock():
    """Migrations aside: they do not wait, and stay as they are."""
    reads = re.compile(
        r"\btime\.(time|monotonic|perf_)|(?<!utils\.)\b(datetime|timezone|date)\.(now|utcnow|today)|from time import"
    )
    package = Path(clock.__file__).parent
    sources = (path for path in package.rglob("*.py") if path.parent.name != "migrations")
    assert [path.name for path in sources if reads.search(path.read_text())] == ["clock.py"]
