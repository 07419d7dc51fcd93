"""Expressions with what they mean: drawn together, so that nothing here reads an expression."""

from dataclasses import dataclass
from datetime import timedelta

from hypothesis import strategies as st

from tests.cron.clocks import DAY

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Drawn:
    text: str
    minutes: set
    hours: set
    months: set
    on_day: object
    on_weekday: object
    both_days: bool

    def matches_day(self, day):
        if day.month not in self.months:
            return False
        tests = (self.on_day(day), self.on_weekday(day))
        return all(tests) if self.both_days else any(tests)

    def next_wall(self, wall, days):
        """The first match after ``wall`` within that many days, or None."""
        times = [(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes)]
        for number in range(days):
            day = (wall + number * DAY).replace(hour=0, minute=0, second=0, microsecond=0)
            if self.matches_day(day):
                for hour, minute in times:
                    found = day + timedelta(hours=hour, minutes=minute)
                    if found > wall:
                        return found
        return None


@st.composite
def items(draw, low, high, names=()):
    """(text, values) of one item of a list."""
    start, end = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=2)))
    form = draw(st.sampled_from(["*", "*/", "n", "n", "n", "-", "-", "-/", "n/", "name"]))
    match form:
        case "*":
            return "*", set(range(low, high + 1))
        case "*/":
            step = draw(st.integers(1, high - low))
            return f"*/{step}", set(range(low, high + 1, step))
        case "-":
            return f"{start}-{end}", set(range(start, end + 1))
        case "-/" if end > start:
            step = draw(st.integers(1, end - start))
            return f"{start}-{end}/{step}", set(range(start, end + 1, step))
        case "n/" if high > start:
            step = draw(st.integers(1, high - start))
            return f"{start}/{step}", set(range(start, high + 1, step))
        case "name" if names and start < low + len(names):
            return names[start - low], {start}
    return f"{start:02}", {start}


@st.composite
def fields(draw, low, high, names=()):
    drawn = draw(st.lists(items(low, high, names), min_size=1, max_size=3))
    return ",".join(text for text, _ in drawn), set().union(*(values for _, values in drawn))


def is_last_day(day):
    return (day + DAY).day == 1


@st.composite
def days_of_month(draw):
    """(text, test of a date, counts as a star)"""
    if draw(st.integers(0, 5)) == 0:
        return "L", is_last_day, False
    text, values = draw(fields(1, 31))
    return text, lambda day: day.day in values, text.startswith("*") or len(values) == 31


@st.composite
def days_of_week(draw):
    text, values = draw(fields(0, 7, WEEKDAYS))
    values = {value % 7 for value in values}
    nth = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 5)), max_size=2))
    text = ",".join([text, *(f"{day}#{number}" for day, number in nth)])
    pairs = {(day % 7, number) for day, number in nth}

    def matches(day):
        weekday = day.isoweekday() % 7
        return weekday in values or (weekday, (day.day + 6) // 7) in pairs

    return text, matches, text.startswith("*") or len(values) == 7


@st.composite
def expressions(draw):
    minute, minutes = draw(fields(0, 59))
    hour, hours = draw(fields(0, 23))
    month, months = draw(fields(1, 12, MONTHS))
    day, on_day, day_star = draw(days_of_month())
    weekday, on_weekday, weekday_star = draw(days_of_week())
    return Drawn(
        text=f"{minute} {hour} {day} {month} {weekday}",
        minutes=minutes,
        hours=hours,
        months=months,
        on_day=on_day,
        on_weekday=on_weekday,
        both_days=day_star or weekday_star,
    )
