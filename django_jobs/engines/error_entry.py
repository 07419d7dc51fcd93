"""One failed attempt as it stands in a job's ``errors``. The engine adds ``at`` and ``attempt``."""

from __future__ import annotations

from typing import Any

from django_jobs.failure import Failure


def error_entry(failure: Failure, worker: str, duration_ms: int) -> dict[str, Any]:
    return {
        "type": failure.error_type,
        "message": failure.message,
        "traceback": failure.traceback,
        "worker": worker,
        "duration_ms": duration_ms,
    }
