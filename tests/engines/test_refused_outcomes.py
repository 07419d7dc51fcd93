"""What the database will not store must cost nobody else's outcome, and not the job's ending either."""

from datetime import timedelta

import pytest

from django_jobs.failure import Failure
from tests.factories import JobFactory

from .support import VENDOR, buried, claim, claim_one, dead, finished, history, rescheduled, settle, stored

pytestmark = pytest.mark.django_db(transaction=True)

LONE_SURROGATE = "\ud800"
SURROGATE = Failure(error_type="ValueError", message=f"bad {LONE_SURROGATE}", traceback="")


def endless():
    result = []
    result.append(result)
    return result


REFUSED = {
    "no JSON number": float("nan"),
    "infinite": [float("inf")],
    "no JSON value": object(),
    "bytes": b"raw",
    "endless": endless(),
} | ({"NUL": "\0", "surrogate": LONE_SURROGATE} if VENDOR == "postgresql" else {})


@pytest.mark.parametrize("result", REFUSED.values(), ids=REFUSED.keys())
def test_a_success_is_recorded_without_a_result_that_cannot_be_stored(session, result):
    JobFactory()
    run = claim_one(session)
    assert settle(session, finished(run, result=result, metrics={"rows": 1})).written == {run.id: "succeeded"}
    row = history(run)
    assert (row.status, row.result, row.metrics) == ("succeeded", None, None)
    (error,) = row.errors
    assert (error["type"], error["attempt"]) == ("Unrecordable", 1)


def test_a_retry_is_recorded_without_a_text_that_cannot_be_stored(session):
    JobFactory()
    run = claim_one(session)
    outcome = rescheduled(run, timedelta(minutes=1), failure=SURROGATE, why="lost")
    assert settle(session, outcome).written == {run.id: None}
    row = stored(run)
    assert (row.status, row.lost_runs, row.attempts) == ("scheduled", 1, 1)
    assert [error["type"] for error in row.errors] == ["Unrecordable"]


@pytest.mark.parametrize("bad", [{"failure": SURROGATE}, {"fingerprint": LONE_SURROGATE}])
def test_a_burial_is_recorded_without_a_text_that_cannot_be_stored(session, bad):
    JobFactory()
    run = claim_one(session)
    assert settle(session, buried(run, **bad)).written == {run.id: "dead"}
    assert (dead(run).reason, dead(run).fingerprint) == ("unrecordable", "")


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30])
def test_a_duration_that_no_column_can_hold_is_cut(session, number):
    JobFactory()
    run = claim_one(session)
    assert settle(session, finished(run, duration_ms=number)).written == {run.id: "succeeded"}


def test_a_delay_beyond_the_calendar_is_cut(session):
    JobFactory()
    run = claim_one(session)
    assert settle(session, rescheduled(run, timedelta.max)).written == {run.id: None}
    assert stored(run).status == "scheduled"


@pytest.mark.parametrize("bad", [[17], [0, 49], range(50)])
def test_of_fifty_outcomes_only_the_bad_ones_lose_their_texts(session, bad):
    JobFactory.create_batch(50)
    runs = claim(session, limit=50)
    outcomes = [finished(run, result=float("nan") if number in bad else number) for number, run in enumerate(runs)]
    tick = settle(session, *outcomes)
    assert tick.written == {run.id: "succeeded" for run in runs}
    assert not [*tick.busy, *tick.lost]
    assert [history(run).result for run in runs] == [None if n in bad else n for n in range(50)]


def test_a_bad_outcome_of_a_lost_run_is_lost_like_any_other(session):
    JobFactory()
    run = claim_one(session)
    settle(session, finished(run))
    assert len(settle(session, finished(run, result=float("nan"))).lost) == 1


def test_the_session_works_on(session):
    JobFactory.create_batch(2)
    first, second = claim(session)
    settle(session, finished(first, result=object()))
    assert settle(session, finished(second, result="fine")).written == {second.id: "succeeded"}
    assert session.stage().staged == 0
