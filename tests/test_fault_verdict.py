"""The verdict of the fault kit finds what it says it looks for."""

from collections import Counter
from dataclasses import replace

import pytest

from faults.evidence import Ended, Evidence, NotedRun, Silence
from faults.verdict import judge

LOST = {"type": "django_jobs.exceptions.WorkerLost", "message": "Attempt 1 was lost: silent (web-7-abcdef012345)."}
FAILED = {"type": "ValueError", "message": "no"}


def run(token, started_at, ended_at, pid=7, job_id="a"):
    return NotedRun(job_id=job_id, token=token, pid=pid, started_at=started_at, ended_at=ended_at)


def succeeded(**changes):
    return replace(Ended(job_id="a", type="record", status="succeeded", attempts=1), **changes)


GOOD = Evidence(
    lease=3.0,
    acknowledged=frozenset("a"),
    orders=frozenset("a"),
    ended=[succeeded()],
    effects=Counter("a"),
    runs=[run(1, 0.0, 1.0)],
)
FROZEN = Silence(pid=7, since=0.5, until=9.0, why="SIGSTOP")
TWICE = {
    "ended": [succeeded(attempts=2, errors=[LOST])],
    "effects": Counter("aa"),
    "runs": [run(1, 0.0, 9.5), run(2, 4.0, 5.0, pid=8)],
}


def test_nothing_is_wrong_where_nothing_is():
    verdict = judge(GOOD)
    assert verdict.wrong == []
    assert (verdict.acknowledged, verdict.succeeded, verdict.runs, verdict.lost_runs) == (1, 1, 1, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ended": []}, "acknowledged jobs are nowhere"),
        ({"ended": [succeeded(), succeeded()]}, "two endings"),
        ({"unfinished": frozenset("a")}, "are unfinished and have an ending"),
        ({"unfinished": frozenset("a"), "ended": []}, "have not ended"),
        ({"orders": frozenset("ab")}, "orders have no job"),
        ({"orders": frozenset()}, "jobs have no order"),
        ({"ended": [succeeded(attempts=2)]}, "2 attempts, 0 errors"),
        ({"ended": [succeeded(errors=[FAILED])]}, "1 attempts, 1 errors"),
        ({"ended": [succeeded(attempts=10, errors=[FAILED] * 10)]}, "10 attempts, 10 errors"),
        ({"effects": Counter()}, "0 effects of 1 runs"),
        ({"effects": Counter("aa")}, "2 effects of 1 runs"),
        ({"ended": [succeeded(type="record_atomic")]}, "0 effects of 1 runs"),
        (
            {"ended": [succeeded(type="record_atomic")], "atomic_effects": Counter("aa"), "runs": [run(1, 0, 1)] * 2},
            "2 effects of 2 runs",
        ),
        ({"ended": [succeeded(attempts=2, errors=[LOST])]}, "lost without a reason"),
        (TWICE, "at once, and nobody was silent"),
        (TWICE | {"silences": [replace(FROZEN, pid=8)]}, "at once, and nobody was silent"),
        (TWICE | {"silences": [replace(FROZEN, since=2.5)]}, "at once, and nobody was silent"),
        ({"ended": [succeeded(result=1)], "runs": [run(1, 0, 1), run(2, 2, 3)]}, "outcome of token 1, the newest is 2"),
        ({"sessions": ["(4711, idle)"]}, "A session is left"),
    ],
)
def test_each_broken_promise_is_found(changes, words):
    assert words in "\n".join(judge(replace(GOOD, **changes)).wrong)


def test_a_second_run_beside_a_frozen_one_is_allowed_and_counted():
    verdict = judge(replace(GOOD, **TWICE, silences=[FROZEN]))
    assert verdict.wrong == []
    assert verdict.two_at_once == {"SIGSTOP": 1}
    assert verdict.lost_runs == 1
    assert verdict.recoveries == [3.5]


def test_a_second_run_after_the_death_of_the_first_is_no_two_at_once():
    dead = Silence(pid=7, since=0.5, until=None, why="SIGKILL")
    changes = TWICE | {"runs": [run(1, 0.0, 0.5), run(2, 0.6, 1.0, pid=8)]}
    verdict = judge(replace(GOOD, **changes, silences=[dead]))
    assert (verdict.wrong, verdict.two_at_once, verdict.recoveries) == ([], {}, [pytest.approx(0.1)])


def test_an_attempt_whose_error_was_pushed_out_is_not_missed():
    assert judge(replace(GOOD, ended=[succeeded(attempts=40, errors=[FAILED] * 10)])).wrong == []
