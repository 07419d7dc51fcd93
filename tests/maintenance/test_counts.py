"""Counts of ended runs: nothing is lost between a look and a report, and nothing is counted twice."""

from datetime import UTC, datetime, timedelta

import pytest

from django_jobs.maintenance import counts as counts_module
from django_jobs.maintenance.counts import Counts

NOON = datetime(2026, 11, 29, 12, 0, 30, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.instant, self.elapsed = NOON, 100.0

    def now(self):
        return self.instant

    def monotonic(self):
        return self.elapsed

    def pass_seconds(self, seconds):
        self.instant += timedelta(seconds=seconds)
        self.elapsed += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(counts_module, "clock", clock)
    return clock


def add(counts, duration_ms=5):
    counts.add("default", "noop", "succeeded", duration_ms)


def numbers(counts):
    return [(key[0].minute, count.count) for key, count in counts.unwritten().items()]


def test_runs_are_counted_by_minute_queue_type_and_outcome(clock):
    counts = Counts()
    counts.add("default", "noop", "succeeded", 3)
    counts.add("default", "noop", "succeeded", 1000)
    counts.add("default", "noop", "dead", 0)
    clock.pass_seconds(40)
    add(counts)
    found = counts.unwritten()
    assert sorted((key[0].minute, key[3], count.count, count.total_ms) for key, count in found.items()) == [
        (0, "dead", 1, 0),
        (0, "succeeded", 2, 1003),
        (1, "succeeded", 1, 5),
    ]


def test_the_histogram_has_a_bucket_for_each_power_of_two(clock):
    counts = Counts()
    for duration_ms in (0, 1, 2, 3, 4, 2**40):
        add(counts, duration_ms)
    (count,) = counts.unwritten().values()
    assert (count.histogram[:4], count.histogram[-1]) == ([1, 1, 2, 1], 1)


def test_what_has_not_grown_is_not_written_again(clock):
    counts = Counts()
    add(counts)
    counts.note_written(counts.unwritten())
    assert numbers(counts) == []
    add(counts)
    assert numbers(counts) == [(0, 2)]


def test_a_run_that_ends_while_a_report_is_written_is_in_the_next_one(clock):
    counts = Counts()
    add(counts)
    being_written = counts.unwritten()
    add(counts)
    clock.pass_seconds(60)
    add(counts)
    counts.note_written(being_written)
    assert numbers(counts) == [(0, 2), (1, 1)]


def test_past_minutes_are_forgotten_once_written(clock):
    counts = Counts()
    add(counts)
    clock.pass_seconds(60)
    add(counts)
    counts.note_written(counts.unwritten())
    assert [key[0].minute for key in counts._counts] == [1]


def test_a_clock_that_is_set_back_does_not_reopen_a_minute_that_was_forgotten(clock):
    counts = Counts()
    add(counts)
    clock.pass_seconds(120)
    add(counts)
    counts.note_written(counts.unwritten())
    clock.instant -= timedelta(hours=1)
    clock.elapsed += 60
    add(counts)
    assert numbers(counts) == [(2, 2)]
