"""Runs one job: decode, call, judge. Whatever happens in between, decoding included, ends as this job's outcome.

Each run gets an empty ``contextvars.Context``, so no request id, language, time zone or user of another run
is seen in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import Error, connections, transaction

from django_jobs.conf import get_settings
from django_jobs.context import adopt_context
from django_jobs.engines import statements
from django_jobs.engines.protocol import NoPartition
from django_jobs.exceptions import InvalidPayload, LeaseLost, TransactionLeftOpen
from django_jobs.ids import uuid7_hex
from django_jobs.logs import get_logger
from django_jobs.models import Job
from django_jobs.outcomes import DeadReason, Outcome, Settled
from django_jobs.payload import UndecodablePayload
from django_jobs.storable import clean_json

from .endings import HAND_BACK_DELAY, failed, handed_back, succeeded, timed_out, undecodable, untaken
from .hygiene import clean_up, clean_up_and_close, close_connections, tidy_connections
from .running import Run, RunningJob

logger = get_logger("django_jobs.worker")

Ended = Outcome | Settled | None
Call = Callable[[], Any]

LEFTOVERS_SECONDS = 5.0


class Executor:
    """``milliseconds`` tells the database's time, for the history rows that atomic runs write themselves.

    ``pause`` waits between questions while the database is away; it returns True when the process must end.
    ``isolate`` runs a handler with ``isolation="process"``; None where this is its process.
    """

    def __init__(
        self,
        milliseconds: Callable[[], int],
        pause: Callable[[], bool],
        isolate: Callable[[Run], Ended] | None = None,
    ) -> None:
        self._milliseconds = milliseconds
        self._pause = pause
        self._isolate = isolate

    def run(self, run: Run, *, rested: bool) -> Ended:
        """Run a ``def`` handler in this thread. None: the lease is lost, there is nothing to write. Never raises.

        ``rested``: the thread has been idle, so its connections may have gone stale.
        """
        if run.lost or run.ended:
            return None
        if self._isolate is not None and run.is_isolated:
            close_connections()  # it opens its own
            return self._isolate(run)
        try:
            if rested:
                tidy_connections()
            return Context().run(self._run_here, run)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises ends its job, not this thread
            return _ending(run, error)

    def _run_here(self, run: Run) -> Ended:
        call = _prepared(run)
        if not callable(call):
            return call
        try:
            if run.job_type is not None and run.job_type.atomic:
                return self._run_atomic(run, call)
            result = call()
            _refuse(clean_up())
            return succeeded(run, result)
        except BaseException:
            clean_up()
            raise

    async def run_async(self, run: Run) -> Ended:
        """Run an ``async def`` handler, in a task that was given an empty context. Never raises."""
        if run.lost or run.ended:
            return None
        if run.stopping == "shutdown":
            return handed_back(run.job, HAND_BACK_DELAY)
        try:
            call = _prepared(run)
            if not callable(call):
                return call
            async with ThreadSensitiveContext() as context:
                run.coroutine = call()
                try:
                    result = await run.coroutine
                    _refuse(await _left_in_thread(context))
                except Exception:
                    with suppress(Exception, asyncio.CancelledError):  # its own error is what is recorded
                        await _left_in_thread(context)
                    raise
                finally:
                    _retire_threads(run, context)
            return succeeded(run, result)
        except BaseException as error:  # noqa: BLE001
            return _ending(run, error)

    def _run_atomic(self, run: Run, call: Call) -> Ended:
        """Promise P10: the handler's writes and the completion commit together, or neither does."""
        alias = get_settings().database
        connection, engine = connections[alias], statements(alias)
        completed = False
        try:
            with transaction.atomic(using=alias, durable=True):
                engine.begin_run(connection)
                transaction.on_commit(run.note_settled, using=alias)
                result = call()
                if connection.get_rollback():
                    raise TransactionLeftOpen(_ROLLED_BACK)
                self._complete(run, result)
                completed = True
        except NoPartition:
            self._add_partition(run)
            return handed_back(run.job, HAND_BACK_DELAY)
        except BaseException:
            if run.settled:
                logger.exception("Job %s (%s) is done, but a hook after its commit failed.", run.job.id, run.job.type)
            elif not completed or not self._has_committed(run):
                raise
        if left := clean_up():
            logger.warning("Job %s (%s) is done, but its handler returned with %s.", run.job.id, run.job.type, left)
        return Settled(job_id=run.job.id, token=run.job.token, duration_ms=run.duration_ms)

    def _add_partition(self, run: Run) -> None:
        """Nothing of the run has been written, so it costs no attempt."""
        alias = get_settings().database
        engine, connection = statements(alias), connections[alias]
        try:
            today = engine.server_time(connection).date()
            added = engine.add_partitions(connection, [today + timedelta(days=n) for n in (-1, 0, 1)])
            logger.warning("Job %s found no history partition for today; %d were made.", run.job.id, added)
        except Error as error:
            logger.critical("Job %s waits for a history partition that could not be made: %s", run.job.id, error)

    def _complete(self, run: Run, result: object) -> None:
        alias = get_settings().database
        done = statements(alias).complete_within(
            connections[alias],
            run.job.id,
            run.job.token,
            history_id=UUID(uuid7_hex(self._milliseconds())),
            duration_ms=run.duration_ms,
            result=None if result is None else clean_json(result),
            metrics=run.metrics,
        )
        if not done:
            run.lost = True
            raise LeaseLost(f"Job {run.job.id}: attempt {run.job.attempt} no longer holds the lease; rolled back.")

    def _has_committed(self, run: Run) -> bool:
        """The COMMIT was refused, or its answer lost: the row tells. Asked until there is an answer or the
        process ends.
        """
        alias, said = get_settings().database, False
        while True:
            try:
                connections[alias].close()
                return not Job.objects.using(alias).filter(pk=run.job.id).exists()
            except Error as error:
                if not said:
                    logger.warning("Job %s: asking whether its transaction has committed: %s", run.job.id, error)
                    said = True
                if self._pause():
                    raise


_ROLLED_BACK = (
    "The handler swallowed a database error inside its transaction, so Django rolled all of it back. "
    "Put transaction.atomic() around the statement that may fail, or let the error out."
)


def _prepared(run: Run) -> Call | Outcome:
    """The handler with its arguments bound, in the job's context; or what becomes of a job that this build
    cannot take.
    """
    job_type = run.job_type
    if job_type is None:
        return untaken(run, DeadReason.NO_HANDLER, f"This worker has no handler registered as {run.job.type!r}.")
    try:
        arguments = job_type.signature.decode(run.job.payload)
    except UndecodablePayload as error:
        return undecodable(run, str(error))
    except InvalidPayload as error:
        return untaken(run, DeadReason.BAD_PAYLOAD, str(error))
    if run.job.context != "{}":
        adopt_context(json.loads(run.job.context))
    if job_type.signature.wants_run:
        return partial(job_type.handler, RunningJob(run), **arguments)
    return partial(job_type.handler, **arguments)


def _refuse(left: str) -> None:
    if left:
        raise TransactionLeftOpen(f"The handler returned with {left}: its writes are rolled back.")


async def _left_in_thread(context: Any) -> str:
    """The leftovers in the thread that served this run's ORM calls, whose connections are closed before the slot is
    free. A busy one was left behind on purpose.
    """
    thread = SyncToAsync.context_to_thread_executor.get(context)
    if thread is None:
        return ""
    with suppress(TimeoutError):
        return await asyncio.wait_for(asyncio.wrap_future(thread.submit(clean_up_and_close)), LEFTOVERS_SECONDS)
    return ""


def _retire_threads(run: Run, context: Any) -> None:
    """End those that served this run's calls, without waiting for one that may still be going on."""
    thread = SyncToAsync.context_to_thread_executor.pop(context, None)
    if thread is not None:
        run.note_call(thread.submit(close_connections))
        thread.shutdown(wait=False)
    if run.pool is not None:
        run.pool.shutdown(wait=False)


def _ending(run: Run, error: BaseException) -> Ended:
    if run.lost and isinstance(error, LeaseLost | asyncio.CancelledError):
        logger.warning("Job %s (%s), attempt %d: the lease is lost.", run.job.id, run.job.type, run.job.attempt)
        return None
    if isinstance(error, asyncio.CancelledError) and run.stopping == "timeout":
        error = timed_out(run)
    if isinstance(error, asyncio.CancelledError) and run.stopping == "shutdown":
        return handed_back(run.job, HAND_BACK_DELAY)
    return failed(run, error)
