from datetime import UTC, datetime

import pytest

from django_jobs import cron
from django_jobs.exceptions import InvalidSchedule
from tests.cron.clocks import zones


@pytest.mark.parametrize("key", ["UTC", "Asia/Kolkata", "Asia/Calcutta", "US/Eastern", "America/Argentina/Ushuaia"])
def test_an_iana_key_is_a_zone(key):
    assert cron.validate_timezone(key) == key


def test_every_key_of_the_zone_data_is_a_zone():
    assert [cron.validate_timezone(key) for key in zones()] == zones()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/london", "Europe/London"),
        ("Europe/Londn", "Europe/London"),
        ("America/New York", "America/New_York"),
        ("kolkata", "Asia/Kolkata"),
        ("utc", "UTC"),
        (" UTC", "UTC"),
        ("GMT+5", "Etc/GMT+5"),
    ],
)
def test_a_name_that_is_nearly_a_key_is_refused_with_the_key(name, meant):
    with pytest.raises(InvalidSchedule, match="is not an IANA time zone") as refusal:
        cron.validate_timezone(name)
    assert str(refusal.value).endswith(f"Did you mean '{meant}'?")


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Phobos", "localtime", "Factory", "../UTC", "/etc/passwd", "U\x00TC", "UTC\n", None, 3, "x" * 10_000],
    ids=lambda name: ascii(name)[:20],
)
def test_any_other_name_is_refused_in_one_line(name):
    with pytest.raises(InvalidSchedule) as refusal:
        cron.validate_timezone(name)
    message = str(refusal.value)
    assert message.isprintable()
    assert len(message) < 200


def test_a_zone_that_is_gone_is_refused_where_slots_are_asked_for():
    for ask in (cron.next_slots, cron.preview):
        with pytest.raises(InvalidSchedule, match="Mars/Phobos"):
            ask("* * * * *", "Mars/Phobos", datetime(2026, 1, 1, tzinfo=UTC), 1)
