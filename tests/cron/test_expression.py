"""What the table of expressions does not say about accepting and refusing."""

from datetime import UTC, datetime

import pytest

from django_jobs import cron
from django_jobs.exceptions import InvalidSchedule


@pytest.mark.parametrize(
    ("expression", "stored"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@hourly", "0 * * * *"),
        ("  0 \t 8  * * *\t", "0 8 * * *"),
        ("0 8 l jan-mar mon", "0 8 L JAN-MAR MON"),
        ("0 0 * * fri-sun", "0 0 * * FRI-SUN"),
        ("0 0 29 2 */7", "0 0 29 2 */7"),
        ("0 0 * * 6#2,SUN#1", "0 0 * * 6#2,SUN#1"),
        ("5/15 * * * *", "5/15 * * * *"),
    ],
)
def test_it_is_stored_as_five_fields(expression, stored):
    assert cron.validate(expression) == stored


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (None, "must be a string"),
        (5, "must be a string"),
        ("0 0 * * *\n", "control character"),
        ("0\u00a00 * * * *", "digits 0 to 9"),
        ("* * * * * *", "for seconds use an interval, as in every=timedelta"),
        ("0 0 L,15 * *", "L stands alone"),
        ("0 0 15W * *", "not supported"),
        ("0 0 LW * *", "not supported"),
        ("R * * * *", "hash forms"),
        ("0 0 * * 1#6", "from 1 to 5"),
        ("0 0 * * 1#", "from 1 to 5"),
        ("0 0 * * #1", "comments are not allowed"),
        ("0 0 1#1 * *", "digits 0 to 9"),
        ("*/0 * * * *", "a step is a number from 1"),
        ("*/ * * * *", "a step is a number from 1"),
        ("*/-5 * * * *", "a step is a number from 1"),
        ("*/5/5 * * * *", "a step is a number from 1"),
        ("1- * * * *", "a value is missing"),
        ("*-5 * * * *", "not a field"),
        ("0 0 * * 7-1", "write 0,1"),
        ("0 0 * 11-2 *", "write 11-12,1-2"),
        ("0 0 * 13 *", "month 13 is not between 1 and 12"),
        ("0 0 * * jan", "wrong field"),
        ("5-5/1 * * * *", "cannot repeat"),
        ("0 0 */30 * 1#2", "never fires"),
        ("@Daily", "write @daily"),
        ("@fortnightly", "there are @yearly"),
        ("TZ=UTC 0 0 * * *", "field of its own"),
    ],
)
def test_it_is_refused_with_a_reason(expression, reason):
    with pytest.raises(InvalidSchedule, match="is refused: ") as refusal:
        cron.validate(expression)
    assert reason in str(refusal.value)


def test_an_expression_has_255_characters_at_most():
    longest = "0,1" + ",1" * 122 + " * * * *"
    assert cron.validate(longest) == longest
    with pytest.raises(InvalidSchedule, match="256 characters; the longest has 255"):
        cron.validate(longest + " ")


def test_the_refusal_of_a_huge_expression_is_short():
    with pytest.raises(InvalidSchedule) as refusal:
        cron.validate("9" * 100_000)
    assert len(str(refusal.value)) < 200


def test_a_refusal_is_a_value_error():
    with pytest.raises(ValueError, match="refused"):
        cron.next_slots("60 * * * *", "UTC", datetime(2026, 1, 1, tzinfo=UTC), 1)
