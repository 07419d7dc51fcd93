"""Which runs a process has started and not settled, as its supervisor reads it."""

import os
from types import SimpleNamespace

import pytest

from django_jobs.worker.ledger import CELLS, Ledger, shared_memory

# What the supervisor's and the child's side share.
TOKEN = 2**62


def run(token):
    return SimpleNamespace(job=SimpleNamespace(token=token), cell=0)


@pytest.fixture
def sides():
    memory = shared_memory()
    child, supervisor = Ledger(os.dup(memory)), Ledger(memory)
    yield child, supervisor
    child.close()
    supervisor.close()


def test_the_other_side_sees_what_has_started_and_not_been_settled(sides):
    child, supervisor = sides
    runs = [run(TOKEN + n) for n in range(3)]
    for one in runs:
        child.note_started(one)
    child.note_settled(runs[1])
    assert supervisor.started() == {TOKEN, TOKEN + 2}


def test_a_run_that_never_started_and_one_that_is_settled_twice_change_nothing(sides):
    child, supervisor = sides
    started = run(1)
    child.note_started(started)
    child.note_settled(started)
    child.note_settled(started)
    child.note_settled(run(2))
    assert supervisor.started() == frozenset()
    for n in range(CELLS - 1):
        child.note_started(run(n + 1))
    assert supervisor.started() is not None, "no cell was given away twice"


def test_more_runs_than_cells_are_not_taken_for_unstarted_ones(sides):
    child, supervisor = sides
    for n in range(CELLS):
        child.note_started(run(n + 1))
    assert supervisor.started() is None
