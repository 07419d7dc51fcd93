"""Each row of the two tables: what to refuse and accept, and when schedules fire."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from django_jobs import cron
from django_jobs.exceptions import InvalidSchedule

FOLDER = Path(__file__).parent
EXPRESSIONS = json.loads((FOLDER / "expressions.json").read_text(encoding="utf-8"))
ROWS = json.loads((FOLDER / "next_fires.json").read_text(encoding="utf-8"))

REASONS = {
    "": "empty",
    "* * * *": "4 fields and needs 5",
    "0 0 * * * 0 2027": "7 fields",
    "60 * * * *": "minute 60 is not between 0 and 59",
    "* * 0 * *": "day of month 0 is not between 1 and 31",
    "* * * 0 *": "month 0 is not between 1 and 12",
    "* * * * 8": "day of week 8 is not between 0 and 7",
    "*/60 * * * *": "its step is not below the 60 values; write 0",
    "*/99999999999999999999 * * * *": "its step is not below the 60 values",
    "* */25 * * *": "its step is not below the 24 values",
    "30-10 * * * *": "reversed range; write 30-59,0-10",
    "0 0 * * 5-1": "reversed range; write 5,6,0,1",
    "0 0 30 2 *": "never fires",
    "0 0 31 4,6,9,11 *": "never fires",
    "1,,2 * * * *": "empty list item",
    "1, * * * *": "empty list item",
    "-5 * * * *": "a value is missing",
    "1.5 * * * *": "digits 0 to 9",
    "0x10 * * * *": "digits 0 to 9",
    "\uff11 * * * *": "digits 0 to 9",
    "jan * * * *": "wrong field",
    "0 0 * * monday": "three letters: MON",
    "0 0 L-3 * *": "not supported",
    "0 0 * * 5L": "not supported",
    "0 0 * * L": "not supported",
    "0 0 * * 1#0": "# takes a number from 1",
    "H * * * *": "hash forms",
    "H(0-5) * * * *": "hash forms",
    "0 0 ? * 1": "? is not supported; write *",
    "/5 * * * *": "a value is missing",
    "** * * * *": "not a field",
    "0-59/100 * * * *": "its step is not below the 60 values",
    "0 0 * * * # c": "comments are not allowed",
    "0 0 * * *\x00": "control character",
    "@reboot": "no meaning here",
    "DAILY": "unknown; write @daily",
    "CRON_TZ=UTC 0 0 * * *": "time zone has a field of its own",
    "0 0 1-5-7 * *": "two ranges",
}
STORED = {"0\t0\t*\t*\t*": "0 0 * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *"}


def test_the_tables_are_whole():
    assert (len(EXPRESSIONS["refuse"]), len(EXPRESSIONS["accept"]), len(ROWS)) == (38, 12, 38)


@pytest.mark.parametrize("expression", [row["expression"] for row in EXPRESSIONS["refuse"]], ids=ascii)
def test_it_is_refused_with_the_reason_in_one_line(expression):
    with pytest.raises(InvalidSchedule) as refusal:
        cron.validate(expression)
    message = str(refusal.value)
    assert REASONS[expression] in message
    assert message.isprintable()


@pytest.mark.parametrize("expression", [row["expression"] for row in EXPRESSIONS["accept"]], ids=ascii)
def test_it_is_accepted_and_stored_as_five_fields(expression):
    assert cron.validate(expression) == STORED.get(expression, expression)


def local(text):
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S%z" if text.count(":") == 2 else "%Y-%m-%d %H:%M%z")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['expression']} {row['timezone']} {row['after']}")
def test_it_fires_at_exactly_these_instants(row):
    expected = [local(text) for text in row["fires"]]
    assert cron.next_slots(row["expression"], row["timezone"], local(row["after"]), len(expected)) == expected
