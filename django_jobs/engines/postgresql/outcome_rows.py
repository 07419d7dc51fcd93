"""Outcomes as the JSON rows that ``settle.sql`` reads. A column left out is NULL there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django_jobs.engines.error_entry import error_entry
from django_jobs.failure import Failure
from django_jobs.ids import uuid7_hex
from django_jobs.outcomes import Buried, Finished, Outcome, Rescheduled


def encode_outcomes(outcomes: Iterable[Outcome], worker: str, milliseconds: int) -> str:
    """``milliseconds``: the database's time, from which the history rows take their ids.

    Of several outcomes of one lease the first counts: each row of the JSON that fits a lease is written.
    """
    firsts: dict[tuple[UUID, int], Outcome] = {}
    for outcome in outcomes:
        firsts.setdefault((outcome.job_id, outcome.token), outcome)
    rows = [
        _plain_success(outcome, milliseconds)
        if _is_plain_success(outcome)
        else json.dumps(_row(outcome, worker, milliseconds))
        for outcome in firsts.values()
    ]
    return f"[{','.join(rows)}]"


def encode_progress(values: Mapping[UUID, tuple[int, Any]]) -> str:
    return json.dumps(
        [{"id": job_id.hex, "token": token, "progress": value} for job_id, (token, value) in values.items()]
    )


def _is_plain_success(outcome: Outcome) -> bool:
    return (
        isinstance(outcome, Finished)
        and outcome.status == "succeeded"
        and outcome.result is None
        and outcome.metrics is None
        and outcome.failure is None
    )


def _plain_success(outcome: Outcome, milliseconds: int) -> str:
    """What ``_row`` gives for the commonest outcome, in a third of the time."""
    return (
        f'{{"id":"{outcome.job_id.hex}","token":{outcome.token},"history_id":"{uuid7_hex(milliseconds)}",'
        f'"duration_ms":{outcome.duration_ms},"kind":"finish","status":"succeeded"}}'
    )


def _row(outcome: Outcome, worker: str, milliseconds: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": outcome.job_id.hex,
        "token": outcome.token,
        "history_id": uuid7_hex(milliseconds),
        "duration_ms": outcome.duration_ms,
    }
    if outcome.failure is not None:
        row |= _failure_columns(outcome.failure, worker, outcome.duration_ms)
    match outcome:
        case Finished():
            row |= {"kind": "finish", "status": outcome.status, "result": outcome.result, "metrics": outcome.metrics}
        case Rescheduled():
            row |= _again_columns(outcome)
        case Buried():
            row |= {
                "kind": "bury",
                "reason": outcome.reason,
                "fingerprint": outcome.fingerprint,
                "lost": int(outcome.reason == "worker_lost"),
            }
    return row


def _again_columns(outcome: Rescheduled) -> dict[str, Any]:
    return {
        "kind": "again",
        "delay": outcome.delay.total_seconds(),
        "why": outcome.why,
        "refund": int(outcome.refund),
        "lost": int(outcome.why == "lost"),
    }


def _failure_columns(failure: Failure, worker: str, duration_ms: int) -> dict[str, Any]:
    return {
        "error": error_entry(failure, worker, duration_ms),
        "error_type": failure.error_type[:200],
        "summary": failure.summary,
        "message": failure.message,
    }
