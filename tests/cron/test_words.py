from datetime import timedelta

import pytest
from django.utils import translation
from hypothesis import given, settings

from django_jobs import cron
from django_jobs.exceptions import InvalidSchedule
from tests.cron.expressions import expressions
from tests.cron.test_proposals import validated


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0,20,40 * * * *", "every 20 minutes"),
        ("*/7 * * * *", "every hour at the minutes */7"),
        ("0 * * * *", "every hour at minute 0"),
        ("0,30,45 * * * *", "every hour at the minutes 0, 30 and 45"),
        ("30 * * * 1-5", "every hour at minute 30 on Monday to Friday"),
        ("0 */2 * * *", "every 2 hours at minute 0"),
        ("15 0-23/6 * * *", "every 6 hours at minute 15"),
        ("0 8 * * *", "every day at 08:00"),
        ("0,30 8,18 * * *", "every day at 08:00, 08:30, 18:00 and 18:30"),
        ("0 9-17 * * 1-5", "every hour from 09:00 to 17:00 on Monday to Friday"),
        ("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:45"),
        ("* 2 * * *", "every minute from 02:00 to 02:59"),
        ("1-59/7 2 * * *", "at the minutes 1-59/7 of hour 2"),
        ("0,10,15 3,5,9 * * *", "at the minutes 0, 10 and 15 of the hours 3, 5 and 9"),
        ("0 12 * * MON,WED,FRI", "on Monday, Wednesday and Friday at 12:00"),
        ("0 0 * * fri-sun", "on Friday to Sunday at 00:00"),
        ("0 0 * * 0-7", "every day at 00:00"),
        ("15 6,18 1,15 * *", "on the days 1 and 15 of the month at 06:15 and 18:15"),
        ("0 0 1 * *", "on day 1 of the month at 00:00"),
        ("0 0 L * *", "on the last day of the month at 00:00"),
        ("0 9 * * 1#1", "on the first Monday of the month at 09:00"),
        ("0 9 * * 7#5,2#4", "on the fourth Tuesday of the month and the fifth Sunday of the month at 09:00"),
        ("0 0 1 JAN,JUN-AUG *", "on day 1 of the month in January and June to August at 00:00"),
        ("0 0 13 * 5", "on day 13 of the month or on Friday at 00:00"),
        ("0 0 29 2 */7", "on day 29 of the month, if it is Sunday, in February at 00:00"),
        ("0 0 */2 * *", "on the days */2 of the month at 00:00"),
    ],
)
def test_it_is_described_in_words(expression, words):
    assert cron.describe(expression, "Asia/Kolkata") == f"{words}, Asia/Kolkata"


@given(drawn=expressions())
@settings(max_examples=60, deadline=None)
def test_any_expression_has_a_description_of_one_line(drawn):
    if validated(drawn):
        words = cron.describe(drawn.text, "Europe/Paris")
        assert words.endswith(", Europe/Paris")
        assert words.isprintable()
        assert "  " not in words
        assert "%(" not in words


@pytest.mark.parametrize(
    ("every", "words"),
    [
        (timedelta(seconds=1), "every second"),
        (timedelta(seconds=90), "every 90 seconds"),
        (timedelta(minutes=1), "every minute"),
        (timedelta(minutes=5), "every 5 minutes"),
        (timedelta(hours=1), "every hour"),
        (timedelta(hours=36), "every 36 hours"),
        (timedelta(days=1), "every day"),
        (timedelta(days=7), "every 7 days"),
    ],
)
def test_an_interval_is_described_in_words(every, words):
    assert cron.describe_interval(every) == words


@pytest.mark.parametrize("expression", ["0 0 13 * 5", "0 0 L * 1#1", "0 0 1 * 1-5"])
def test_two_restricted_day_fields_are_warned_about(expression):
    assert "either of them, not only on days that match both" in cron.day_warning(expression)


@pytest.mark.parametrize("expression", ["0 0 13 * *", "0 0 * * 5", "0 0 */2 * 5", "0 0 13 * */2", "0 0 1-31 * 5"])
def test_one_restricted_day_field_is_not_warned_about(expression):
    assert cron.day_warning(expression) == ""


def test_weekdays_and_months_are_in_the_active_language():
    with translation.override("de"):
        words = cron.describe("0 9 * 3 1", "Europe/Berlin")
    assert "Montag" in words
    assert "März" in words


def test_what_is_not_valid_is_not_described():
    for ask in (lambda: cron.describe("60 * * * *", "UTC"), lambda: cron.describe("* * * * *", "Mars/Phobos")):
        with pytest.raises(InvalidSchedule):
            ask()
    with pytest.raises(InvalidSchedule):
        cron.day_warning("60 * * * *")
    with pytest.raises(InvalidSchedule):
        cron.describe_interval(timedelta(0))
