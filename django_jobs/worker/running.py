"""A run: one attempt of one job in this process. ``Run`` is what the worker keeps, ``RunningJob`` what the
handler sees.

A handler's calls change the Run and nothing else; the loop and the renewer write it to the tables. So nothing
a handler reports touches the ``jobs`` row on the handler's own connection.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import Any
from uuid import UUID, uuid5

from asgiref.sync import sync_to_async
from django.db import IntegrityError, connections, transaction

from django_jobs import clock
from django_jobs.conf import get_settings
from django_jobs.context import JITTER, SCHEDULE, SLOT, without_reserved
from django_jobs.engines.values import ClaimedJob
from django_jobs.exceptions import LeaseLost
from django_jobs.models import Effect
from django_jobs.policy import JobType
from django_jobs.storable import clean_json, clean_text

_KEYS = UUID("6b0f3c52-5d0c-4f0e-9a57-1d3f4c3a2e61")
MAX_EFFECT_NAME = 200


class Run:
    """Written by the thread that runs it, by the loop and by the renewer; each field by one of them.

    ``job_type`` is None for a type this build does not know. ``stopping``: why ``stop`` was called:
    ``timeout``, ``shutdown`` or ``lease``. ``cell``: its place in the ledger, 0 for none. ``ended``: its slot is
    free, guarded by its Slots. ``returned``: the handler has come back, perhaps after it was given up on.
    ``calls``: what it has going on in threads besides, of ``pool`` for one.
    """

    __slots__ = (
        "calls",
        "cancelled",
        "cell",
        "coroutine",
        "deadline",
        "ended",
        "job",
        "job_type",
        "lost",
        "metrics",
        "pool",
        "progress",
        "returned",
        "settled",
        "shown",
        "started",
        "stop",
        "stopping",
    )

    def __init__(self, job: ClaimedJob, job_type: JobType | None) -> None:
        self.job = job
        self.job_type = job_type
        self.cell = 0
        self.started = 0.0
        self.deadline: float | None = None
        self.ended = False
        self.returned = False
        self.settled = False
        self.cancelled = False
        self.lost = False
        self.metrics: dict[str, Any] | None = None
        self.progress: dict[str, Any] | None = None
        self.shown: dict[str, Any] | None = None
        self.coroutine: Any = None
        self.pool: ThreadPoolExecutor | None = None
        self.calls: set[Future[Any]] = set()
        self.stop: Callable[[], object] | None = None
        self.stopping = ""

    @property
    def is_async(self) -> bool:
        return self.job_type is not None and self.job_type.is_async

    @property
    def is_isolated(self) -> bool:
        return self.job_type is not None and self.job_type.isolation == "process"

    @property
    def must_stop(self) -> bool:
        """Is there nothing more to wait for? For those who can end a run from outside."""
        return self.ended or self.stopping in ("timeout", "shutdown")

    def start(self) -> None:
        self.started = clock.monotonic()
        limit = self.job_type.time_limit if self.job_type else None
        if limit is not None:
            self.deadline = self.started + limit.total_seconds()

    def note_settled(self) -> None:
        """The transaction that completed the job has committed."""
        self.settled = True

    def ask_to_stop(self, why: str) -> None:
        """Cancel an async run; a thread can only be told."""
        if not self.stopping:
            self.stopping = why
            if self.stop is not None:
                self.stop()

    def note_call(self, call: Future[Any]) -> Future[Any]:
        """It goes on in a thread, which the end of the handler does not stop."""
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)
        return call

    @property
    def is_gone(self) -> bool:
        """Has the handler come back, and whatever it had going on in threads?"""
        return self.returned and not self.calls

    @property
    def duration_ms(self) -> int:
        return int((clock.monotonic() - self.started) * 1000) if self.started else 0


class RunningJob:
    """The first parameter of a handler that asks for it by annotation."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def id(self) -> UUID:
        return self._run.job.id

    @property
    def type(self) -> str:
        return self._run.job.type

    @property
    def queue(self) -> str:
        return self._run.job.queue

    @property
    def tenant(self) -> str:
        return self._run.job.tenant

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self._run.job.attempt

    @property
    def max_attempts(self) -> int:
        return self._run.job.max_attempts

    @cached_property
    def _all_context(self) -> dict[str, str]:
        context: dict[str, str] = json.loads(self._run.job.context)
        return context

    @cached_property
    def context(self) -> dict[str, str]:
        """Request id, trace parent and what else the enqueuer sent along."""
        return without_reserved(self._all_context)

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that fired this job. None: it was enqueued by other means."""
        return self._all_context.get(SCHEDULE)

    @property
    def scheduled_for(self) -> datetime | None:
        """The slot of the schedule that this job is for, in UTC: the same however late the job runs, and in every
        attempt. None for a job that no slot fired.
        """
        slot = self._all_context.get(SLOT)
        return None if slot is None else datetime.fromisoformat(slot)

    @property
    def jitter(self) -> timedelta:
        """Of the schedule, to hand to ``enqueue_many(…, spread=run.jitter)``. Zero without one."""
        return timedelta(seconds=float(self._all_context.get(JITTER, 0)))

    @property
    def fencing_token(self) -> int:
        """Grows with every claim of any job. Send it along where the far side can refuse smaller ones."""
        return self._run.job.token

    @property
    def deadline(self) -> datetime | None:
        """When this run times out, by this machine's clock. None: never."""
        if self._run.deadline is None:
            return None
        return clock.now() + timedelta(seconds=self._run.deadline - clock.monotonic())

    def idempotency_key_for(self, service: str) -> str:
        """A key for a remote call: the same in every attempt of this job, another for each service and job."""
        return str(uuid5(_KEYS, f"{self.id}:{service}"))

    def progress(self, fraction: float, message: str = "") -> None:
        """Show how far the run is: 0 to 1, with a short message. Cheap; written every few seconds at most."""
        if not isinstance(fraction, int | float) or not math.isfinite(fraction):
            raise ValueError(f"progress() takes a number from 0 to 1, not {fraction!r}.")
        self._run.progress = {"fraction": min(max(float(fraction), 0.0), 1.0), "message": clean_text(str(message), 500)}

    def report(self, **metrics: Any) -> None:
        """Record numbers about this run, such as ``rows_processed=120``; kept with its history row."""
        merged = clean_json((self._run.metrics or {}) | metrics)
        if isinstance(merged, dict):
            self._run.metrics = merged

    def is_cancelled(self) -> bool:
        """Has somebody asked this job to stop? Known within one renewal of the lease."""
        return self._run.cancelled

    def lease_lost(self) -> bool:
        """May another run of this job be going on? Then stop: what this run writes to the job does not count."""
        return self._run.lost

    def check(self) -> None:
        """Raise LeaseLost if the lease is lost. For long loops."""
        if self._run.lost:
            raise LeaseLost(f"Job {self.id}: the lease of attempt {self.attempt} is lost; another run may be going on.")

    def once(self, name: str) -> Once:
        """``with run.once("receipt") as first: if first: …``: True until the effect is marked as done.

        Inside ``transaction.atomic()`` on the jobs alias (or with ``atomic=True``) the mark commits with your
        writes: exactly once. Outside, the mark is written after the block: at least once. No local mark makes
        a remote effect safe: give the remote side ``idempotency_key_for()``.
        """
        if not name or len(name) > MAX_EFFECT_NAME:
            raise ValueError(f"once() takes a name of 1 to {MAX_EFFECT_NAME} characters.")
        return Once(self.id, name)


class Once:
    """The context manager of ``RunningJob.once``, plain and async."""

    def __init__(self, job_id: UUID, name: str) -> None:
        self._job_id, self._name = job_id, name
        self._alias = get_settings().database
        self._mark_at_exit = False

    def __enter__(self) -> bool:
        if connections[self._alias].in_atomic_block:
            return self._mark()
        self._mark_at_exit = not self._marks().exists()
        return self._mark_at_exit

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._mark_at_exit and error is None:
            self._mark()

    async def __aenter__(self) -> bool:
        return await sync_to_async(self.__enter__)()

    async def __aexit__(self, *exception: Any) -> None:
        await sync_to_async(self.__exit__)(*exception)

    def _marks(self) -> Any:
        return Effect.objects.using(self._alias).filter(job_id=self._job_id, name=self._name)

    def _mark(self) -> bool:
        """Waits for another transaction that is marking the same effect. True if the mark is ours."""
        try:
            with transaction.atomic(using=self._alias):
                Effect(job_id=self._job_id, name=self._name).save(using=self._alias, force_insert=True)
        except IntegrityError:
            return False
        return True
