"""Any expression of the grammar matches the dates and times it says, whatever croniter makes of it."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobs import cron
from django_jobs.cron.expression import read_expression
from django_jobs.exceptions import InvalidSchedule
from tests.cron.calls import calls_of
from tests.cron.clocks import DAY
from tests.cron.expressions import expressions

BASES = st.datetimes(datetime(2020, 1, 1), datetime(2110, 1, 1))
MOST_CALLS = 20_000  # a few milliseconds


def validated(drawn):
    """Whether it is accepted; what is refused is right in form, and matches no date."""
    try:
        cron.validate(drawn.text)
    except InvalidSchedule as error:
        reason = str(error)
    else:
        return True
    assert "never fires" in reason
    assert drawn.next_wall(datetime(2000, 1, 1), 4 * 366) is None
    return False


@given(drawn=expressions(), base=BASES)
@settings(max_examples=150, deadline=None)
def test_the_next_slot_in_utc_is_the_next_match_of_the_calendar(drawn, base):
    if validated(drawn):
        [slot] = cron.next_slots(drawn.text, "UTC", base.replace(tzinfo=UTC), 1)
        days = (slot.replace(tzinfo=None) - base).days + 2
        assert drawn.next_wall(base, days) == slot.replace(tzinfo=None)


@given(drawn=expressions())
@settings(max_examples=60, deadline=None)
def test_what_is_stored_is_accepted_again_and_means_the_same(drawn):
    if validated(drawn):
        stored = cron.validate(drawn.text)
        assert cron.validate(stored) == stored
        assert read_expression(stored).day.starred == read_expression(drawn.text).day.starred


@given(drawn=expressions(), base=BASES)
@settings(max_examples=60, deadline=None)
def test_an_accepted_expression_is_answered_in_few_steps(drawn, base):
    if validated(drawn):
        after = base.replace(tzinfo=UTC)
        assert calls_of(lambda: cron.next_slots(drawn.text, "America/New_York", after, 1)) < MOST_CALLS


def test_the_longest_waits_are_answered_in_few_steps():
    after = datetime(2096, 2, 29, tzinfo=UTC)
    for expression in ("0 0 29 2 *", "0 0 29 2 */7", "* * 29 2 */7", "0 0 31 2 1", "0 0 */28 2 1#5", "59 23 L 2 0#5"):
        assert cron.validate(expression)
        assert calls_of(lambda text=expression: cron.next_slots(text, "Europe/London", after, 1)) < MOST_CALLS


def test_a_leap_day_that_has_to_be_a_sunday_waits_forty_years_for_it():
    after = datetime(2088, 2, 29, tzinfo=UTC)
    assert cron.next_slots("0 0 29 2 */7", "UTC", after, 1) == [datetime(2128, 2, 29, tzinfo=UTC)]


def test_a_restricted_day_counts_beside_an_nth_weekday():
    after = datetime(2026, 12, 1, tzinfo=UTC)
    slots = cron.next_slots("0 0 15 * 1#1,3", "UTC", after, 6)
    assert [slot.day for slot in slots] == [2, 7, 9, 15, 16, 23]


def test_a_step_from_a_weekday_goes_on_to_sunday_as_seven():
    after = datetime(2026, 11, 29, tzinfo=UTC)
    slots = cron.next_slots("0 0 * * 1/2", "UTC", after, 5)
    assert [slot - after for slot in slots] == [DAY, 3 * DAY, 5 * DAY, 7 * DAY, 8 * DAY]


def test_a_field_that_lists_its_whole_range_counts_as_a_star():
    after = datetime(2026, 11, 29, tzinfo=UTC)
    for expression in ("0 0 1-31 * 1", "0 0 1/1 * 1", "0 0 1-15,16-31 * MON"):
        assert [slot.isoweekday() for slot in cron.next_slots(expression, "UTC", after, 10)] == [1] * 10
    assert read_expression("0-59 1 * * *").is_wildcard
    assert read_expression("0 0-23 * * *").is_wildcard
    assert not read_expression("0 0-23/2 * * *").is_wildcard


def test_a_slot_is_strictly_later_than_a_base_within_its_minute():
    slot = datetime(2026, 11, 29, 8, tzinfo=UTC)
    before = slot - timedelta.resolution
    assert cron.next_slots("0 8 * * *", "UTC", before, 1) == [slot]
    assert cron.next_slots("0 8 * * *", "UTC", slot, 1) == [slot + DAY]
    assert cron.next_slots("0 8 * * *", "UTC", slot + timedelta.resolution, 1) == [slot + DAY]


def test_asking_leaves_the_cached_proposers_as_they_were():
    proposers = read_expression("0 0 13 * 5").proposers
    before = [proposer.get_current() for proposer in proposers]
    cron.next_slots("0 0 13 * 5", "UTC", datetime(2026, 11, 29, tzinfo=UTC), 3)
    assert [proposer.get_current() for proposer in proposers] == before
