"""What goes between a worker and the process that runs a handler with ``isolation="process"``, as plain JSON.

The job goes over as it was claimed; the child finds the handler in its own register, by the type's name. Back comes
what became of the run: texts and numbers, never an exception or a result as an object.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from django_jobs.engines.values import ClaimedJob
from django_jobs.failure import Failure
from django_jobs.outcomes import Buried, Finished, Rescheduled, Settled

from .executor import Ended

KINDS = {kind.__name__: kind for kind in (Finished, Rescheduled, Buried, Settled)}


def encode_job(job: ClaimedJob) -> dict[str, Any]:
    return asdict(job) | {"id": job.id.hex}


def decode_job(fields: dict[str, Any]) -> ClaimedJob:
    return ClaimedJob(**fields | {"id": UUID(fields["id"])})


def encode_ending(ended: Ended) -> dict[str, Any]:
    """An empty one says that the lease is lost and there is nothing to write."""
    if ended is None:
        return {}
    fields = asdict(ended) | {"job_id": ended.job_id.hex, "kind": type(ended).__name__}
    if isinstance(ended, Rescheduled):
        fields["delay"] = ended.delay.total_seconds()
    return fields


def decode_ending(fields: dict[str, Any]) -> Ended:
    if not fields:
        return None
    values = fields | {"job_id": UUID(fields["job_id"])}
    kind = KINDS[values.pop("kind")]
    if values.get("failure") is not None:
        values["failure"] = Failure(**values["failure"])
    if "delay" in values:
        values["delay"] = timedelta(seconds=values["delay"])
    ending: Ended = kind(**values)
    return ending
