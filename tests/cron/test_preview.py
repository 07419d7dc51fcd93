from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from django_jobs import cron
from tests.cron.clocks import shown
from tests.cron.expressions import expressions
from tests.cron.test_proposals import validated
from tests.cron.test_slots import near_a_change


def notes(expression, zone, after, count):
    previewed = cron.preview(expression, zone, datetime.fromisoformat(after).astimezone(UTC), count)
    return [(f"{slot.local:%m-%d %H:%M}", slot.note) for slot in previewed]


def test_a_fixed_time_that_is_left_out_says_when_it_runs():
    assert notes("30 2 * * *", "America/New_York", "2026-03-07T12:00-05:00", 2) == [
        ("03-08 03:00", "clocks go forward at 02:00: runs at 03:00"),
        ("03-09 02:30", ""),
    ]


def test_a_fixed_time_at_the_end_of_the_gap_is_not_said_to_be_moved():
    assert notes("0 3 * * *", "America/New_York", "2026-03-07T12:00-05:00", 1) == [
        ("03-08 03:00", "clocks go forward at 02:00 to 03:00"),
    ]


def test_only_the_run_that_was_moved_says_so():
    assert notes("30 1-4 * * *", "America/New_York", "2026-03-08T00:00-05:00", 3) == [
        ("03-08 01:30", "clocks go forward at 02:00 to 03:00"),
        ("03-08 03:00", "clocks go forward at 02:00: runs at 03:00"),
        ("03-08 03:30", "clocks go forward at 02:00 to 03:00"),
    ]


def test_a_fixed_time_that_comes_twice_says_that_it_runs_once():
    assert notes("30 1 * * *", "Europe/London", "2026-10-24T12:00+01:00", 2) == [
        ("10-25 01:30", "clocks go back at 02:00 to 01:00: runs once, the first time"),
        ("10-26 01:30", ""),
    ]


def test_a_wildcard_says_what_comes_twice_and_what_is_left_out():
    assert notes("0 * * * *", "Europe/London", "2026-10-25T00:30+01:00", 3) == [
        ("10-25 01:00", "clocks go back at 02:00 to 01:00: runs both times"),
        ("10-25 01:00", "clocks go back at 02:00 to 01:00: runs both times"),
        ("10-25 02:00", "clocks go back at 02:00 to 01:00"),
    ]
    left_out = "clocks go forward at 01:00 to 02:00: what is between is left out"
    assert notes("0 * * * *", "Europe/London", "2026-03-28T23:30+00:00", 2) == [
        ("03-29 00:00", left_out),
        ("03-29 02:00", left_out),
    ]


def test_a_change_at_midnight_belongs_to_the_day_that_begins():
    assert notes("30 23 * * *", "Asia/Beirut", "2026-03-28T12:00+02:00", 2) == [
        ("03-28 23:30", ""),
        ("03-29 23:30", "clocks go forward at 00:00 to 01:00"),
    ]


def test_a_day_that_is_left_out_is_named():
    note = "clocks go forward at 2011-12-30 00:00 to 2011-12-31 00:00: what is between is left out"
    assert notes("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00-10:00", 2) == [
        ("12-31 09:00", note),
        ("01-01 09:00", ""),
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_where_clocks_do_not_change_there_is_no_note(zone):
    assert {note for _, note in notes("30 2 * * *", zone, "2026-01-01T00:00+00:00", 400)} == {""}


@given(near=near_a_change(), drawn=expressions())
@settings(max_examples=50, deadline=None)
def test_the_preview_is_the_next_slots_in_the_zone(near, drawn):
    if validated(drawn):
        zone, after = near
        previewed = cron.preview(drawn.text, zone, after, 2)
        assert [slot.at for slot in previewed] == cron.next_slots(drawn.text, zone, after, 2)
        assert [slot.local.replace(tzinfo=None, fold=0) for slot in previewed] == [
            shown(zone, slot.at) for slot in previewed
        ]
        assert all(slot.local.astimezone(UTC) == slot.at for slot in previewed)
