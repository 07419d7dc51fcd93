"""The verdict of the fault kit finds what it says it looks for."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from faults.evidence import Ended, Evidence, NotedRun, Silence
from faults.verdict import judge

FAILED = {"type": "ValueError", "message": "no"}
EPOCH = 1_000_000.0


def given_up(exception, at, message, attempt=1):
    instant = datetime.fromtimestamp(EPOCH + at, UTC).isoformat()
    return {"type": f"django_jobs.exceptions.{exception}", "at": instant, "attempt": attempt, "message": message}


def lost(at, pid=7, attempt=1):
    return given_up("WorkerLost", at, f"Attempt {attempt} was lost: silent (web-{pid}-abcdef012345).", attempt)


def run(token, started_at, ended_at, pid=7, job_id="a"):
    return NotedRun(job_id=job_id, token=token, attempt=token, pid=pid, started_at=started_at, ended_at=ended_at)


def succeeded(**changes):
    return replace(Ended(job_id="a", type="record", status="succeeded", attempts=1), **changes)


GOOD = Evidence(
    lease=3.0,
    acknowledged=frozenset("a"),
    orders=frozenset("a"),
    ended=[succeeded()],
    effects=Counter("a"),
    runs=[run(1, 0.0, 1.0)],
    epoch=EPOCH,
)
FROZEN = Silence(pid=7, since=0.5, until=9.0, why="SIGSTOP")
KILLED = Silence(pid=7, since=0.5, until=None, why="SIGKILL")


def twice(lost_at=3.6, second=4.0, ended_at=9.5, first=0.0, **changes):
    """Lost in the process 7, and run beside that in the process 8."""
    return {
        "ended": [succeeded(attempts=2, errors=[lost(lost_at)])],
        "effects": Counter("aa"),
        "runs": [run(1, first, ended_at), run(2, second, second + 1, pid=8)],
    } | changes


def silent(since, until, pid=7):
    return {"silences": [Silence(pid=pid, since=since, until=until, why="SIGSTOP")]}


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
        ({"ended": [succeeded(result=1)], "runs": [run(1, 0, 1), run(2, 2, 3)]}, "outcome of token 1, the newest is 2"),
        ({"sessions": ["(4711, idle)"]}, "A session is left"),
    ],
)
def test_each_broken_promise_is_found(changes, words):
    assert words in "\n".join(judge(replace(GOOD, **changes)).wrong)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(twice(), id="no silence"),
        pytest.param(twice() | silent(0.5, 9, pid=8), id="of another process"),
        pytest.param(twice() | silent(2.5, 9), id="the lease was taken before it can have run out"),
        pytest.param(twice(4.2, 4.3) | silent(2.0, 3.5), id="shorter than what is left of a lease after a renewal"),
        pytest.param(twice() | silent(-3.0, 2.0), id="it had time to renew afterwards"),
        pytest.param(twice(103.5, 104.0, 110.0, first=100.0) | silent(0, 5), id="ended long before"),
        pytest.param(twice() | silent(20, 30), id="began afterwards"),
        pytest.param(twice() | {"deadly": {7: 5.0}}, id="died afterwards"),
        pytest.param(twice() | {"silences": [replace(KILLED, since=5.0)]}, id="killed afterwards"),
    ],
)
def test_a_run_that_no_silence_explains_is_neither_lost_nor_doubled_for_a_reason(changes):
    wrong = "\n".join(judge(replace(GOOD, **changes)).wrong)
    assert "lost without a reason" in wrong
    assert "at once, and the older was not silent" in wrong


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(twice(4.5, 4.6) | silent(0.5, 9), id="beside a longer one"),
        pytest.param(twice(2.4, 2.5) | silent(0.5, 9), id="last renewed before it began"),
        pytest.param(twice(4.6, 6.5) | silent(0.5, 4), id="taken right after its end, and started later"),
        pytest.param(twice(3.6, 4.0, 0.4) | silent(0.5, 9), id="ended, but not settled"),
        pytest.param(twice(0.6, 0.7, 0.5) | {"silences": [KILLED]}, id="killed, and freed at once"),
        pytest.param(twice(0.6, 0.7, 0.5) | {"deadly": {7: 0.5}}, id="ended by a handler"),
    ],
)
def test_each_loss_that_is_allowed_is_right(changes):
    assert judge(replace(GOOD, **changes)).wrong == []


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([lost(3.6, pid=9)], id="of another process"),
        pytest.param([lost(3.6, attempt=2)], id="of another attempt"),
        pytest.param([lost(6.0)], id="after the second had begun"),
        pytest.param([FAILED], id="failed"),
    ],
)
def test_two_runs_at_once_need_the_record_that_the_older_was_lost_before(errors):
    changes = twice(ended=[succeeded(attempts=2, errors=errors)])
    silences = [FROZEN, replace(FROZEN, pid=9)]
    assert judge(replace(GOOD, **changes, silences=silences)).wrong == [
        "a: runs in the processes 7 and 8 at once, and the older was not silent for a lease."
    ]


def test_a_second_run_beside_one_that_overran_its_time_out_is_allowed_and_counted():
    overran = given_up("RunTimedOut", 2.0, "The run took longer than its time-out of 0:00:00.500000.")
    verdict = judge(replace(GOOD, **twice(ended=[succeeded(attempts=2, errors=[overran])], ended_at=None)))
    assert (verdict.wrong, verdict.two_at_once) == ([], {"time-out": 1})


def test_a_second_run_beside_a_frozen_one_is_allowed_and_counted():
    verdict = judge(replace(GOOD, **twice(), silences=[FROZEN]))
    assert verdict.wrong == []
    assert verdict.two_at_once == {"SIGSTOP": 1}
    assert verdict.lost_runs == 1
    assert verdict.recoveries == [3.5]


def test_a_second_run_after_the_death_of_the_first_is_no_two_at_once():
    verdict = judge(replace(GOOD, **twice(0.55, 0.6, 0.5), silences=[KILLED]))
    assert (verdict.wrong, verdict.two_at_once, verdict.recoveries) == ([], {}, [pytest.approx(0.1)])


def test_an_attempt_whose_error_was_pushed_out_is_not_missed():
    assert judge(replace(GOOD, ended=[succeeded(attempts=40, errors=[FAILED] * 10)])).wrong == []
