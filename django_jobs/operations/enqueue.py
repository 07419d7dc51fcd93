"""Enqueueing: one statement in the caller's transaction, or any number of jobs by COPY."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, timedelta
from itertools import zip_longest
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_jobs.chunks import chunks
from django_jobs.conf import Settings, get_settings
from django_jobs.context import current_context
from django_jobs.engines import statements
from django_jobs.engines.protocol import Statements
from django_jobs.engines.values import BulkRow, NewJob
from django_jobs.exceptions import InvalidOption, InvalidPayload
from django_jobs.ids import uuid7
from django_jobs.payload import payload_hash
from django_jobs.policy import JobType
from django_jobs.registry import registry

from .announcing import announce_after_commit
from .enqueued import EnqueuedJob
from .idempotency import enqueue_against_key, known_duplicates
from .options import Options, check_context, check_duration, check_key
from .transactions import enqueueing_connection, wake_after_commit

BATCH = 10_000
MISSING: Any = object()


def enqueue(type: str, payload: Mapping[str, Any] | None = None, /, **options: Any) -> EnqueuedJob:
    """Enqueue by name, for callers that do not import the handler.

    ``options`` are those of ``using()``. Raises EnqueueError: UnknownJobType, UnknownQueue, InvalidPayload,
    InvalidOption, SeparateTransactions or IdempotencyConflict; nothing is written then.
    """
    return enqueue_type(registry.get(type), {} if payload is None else payload, Options().with_(options))


async def aenqueue(type: str, payload: Mapping[str, Any] | None = None, /, **options: Any) -> EnqueuedJob:
    """``enqueue`` for async callers."""
    return await sync_to_async(enqueue)(type, payload, **options)


def enqueue_type(job_type: JobType, payload: Mapping[str, Any], options: Options) -> EnqueuedJob:
    settings = get_settings()
    encoded = _encoded(job_type, payload, settings)
    connection = enqueueing_connection()
    engine = statements(connection.alias)
    job = new_job(job_type, encoded, options, settings)
    enqueued = _enqueue_one(connection, engine, job)
    announce_after_commit(connection, job_type, job.queue, [enqueued])
    return enqueued


def _enqueue_one(connection: BaseDatabaseWrapper, engine: Statements, job: NewJob) -> EnqueuedJob:
    placed = engine.enqueue(connection, job)
    if placed is None:
        return enqueue_against_key(connection, engine, job)
    if placed.asleep:
        wake_after_commit(connection, job.queue)
    return EnqueuedJob(job.id, placed.status)


def enqueue_many_of_type(
    job_type: JobType,
    payloads: Iterable[Mapping[str, Any]],
    options: Options,
    *,
    spread: timedelta = timedelta(0),
    idempotency_keys: Iterable[str] | None = None,
) -> list[EnqueuedJob]:
    """Any number of jobs in one transaction; the result is in the order of ``payloads``.

    ``spread``: the jobs' run_at are evenly spread over this time. ``idempotency_keys``: one key for each payload.
    """
    _check_bulk(options, spread)
    settings = get_settings()
    connection = enqueueing_connection()
    engine = statements(connection.alias)
    shared = new_job(job_type, b"", options, settings)
    jobs: list[EnqueuedJob] = []
    with transaction.atomic(using=connection.alias):
        if idempotency_keys is not None:
            payloads = list(payloads)
            rows = _rows(job_type, payloads, settings, step=_step(spread, payloads), keys=idempotency_keys)
            jobs = _enqueue_with_keys(connection, engine, shared, list(rows))
        else:
            # Taken before a COPY begins: a queryset on the same connection may be what they come from.
            for batch in chunks(payloads, None if spread else BATCH):
                rows = _rows(job_type, batch, settings, step=_step(spread, batch), first=len(jobs))
                jobs += _enqueue_batch(connection, engine, shared, rows)
        announce_after_commit(connection, job_type, shared.queue, jobs)
    return jobs


def _step(spread: timedelta, payloads: list[Mapping[str, Any]]) -> float:
    return spread.total_seconds() / max(len(payloads), 1)


def _enqueue_batch(
    connection: BaseDatabaseWrapper, engine: Statements, shared: NewJob, rows: Iterable[BulkRow]
) -> Iterable[EnqueuedJob]:
    """The rows are encoded while the server writes those before them."""
    ids: list[UUID] = []
    placed = engine.enqueue_many(connection, shared, _noting_ids(rows, ids), keyed=False)
    if placed.asleep:
        wake_after_commit(connection, shared.queue)
    return map(EnqueuedJob, ids, placed.statuses)  # type: ignore[arg-type]


def _noting_ids(rows: Iterable[BulkRow], ids: list[UUID]) -> Iterator[BulkRow]:
    for row in rows:
        ids.append(row.id)
        yield row


def _enqueue_with_keys(
    connection: BaseDatabaseWrapper, engine: Statements, shared: NewJob, rows: list[BulkRow]
) -> list[EnqueuedJob]:
    """In the order of the keys, so that two bulks with the same keys wait for each other but never in a circle."""
    firsts: dict[str, BulkRow] = {}
    for row in rows:
        firsts.setdefault(row.key, row)
    sent = sorted(firsts.values(), key=lambda row: row.key)
    placed = engine.enqueue_many(connection, shared, sent, keyed=True)
    if placed.asleep:
        wake_after_commit(connection, shared.queue)
    jobs = {row.id: EnqueuedJob(row.id, status) for row, status in zip(sent, placed.statuses, strict=True) if status}
    jobs |= known_duplicates(connection, shared.queue, [row for row in rows if row.id not in jobs])
    for row in sorted(rows, key=lambda row: row.key):
        if row.id not in jobs:
            jobs[row.id] = enqueue_against_key(connection, engine, _alone(shared, row))
    return [jobs[row.id] for row in rows]


def _check_bulk(options: Options, spread: timedelta) -> None:
    if options.idempotency_key is not None:
        raise InvalidOption(
            "One idempotency_key cannot stand for many jobs: pass idempotency_keys=[…] to enqueue_many()."
        )
    check_duration("spread", spread)


def _rows(
    job_type: JobType,
    payloads: list[Mapping[str, Any]],
    settings: Settings,
    *,
    step: float,
    first: int = 0,
    keys: Iterable[str] | None = None,
) -> Iterable[BulkRow]:
    """``step``: seconds between one job and the next. ``first``: the number of the first payload, for errors."""
    encoded = _numbered(job_type, payloads, settings, first)
    if keys is None:
        rows = (BulkRow(uuid7(), payload.decode(), (n - first) * step) for n, payload in encoded)
        return rows if job_type.signature.runs_no_foreign_code else list(rows)
    return (
        BulkRow(uuid7(), payload.decode(), n * step, key, payload_hash(job_type.first_name, payload))
        for n, payload, key in _with_keys(encoded, keys)
    )


def _with_keys(encoded: Iterator[tuple[int, bytes]], keys: Iterable[str]) -> Iterator[tuple[int, bytes, str]]:
    for pair, key in zip_longest(encoded, keys, fillvalue=MISSING):
        if pair is MISSING or key is MISSING:
            raise InvalidOption("idempotency_keys must hold exactly one key for each payload.")
        n, payload = pair
        try:
            check_key(key)
        except InvalidOption as error:
            raise InvalidOption(f"Payload number {n}: {error}") from None
        yield n, payload, key


def _numbered(
    job_type: JobType, payloads: Iterable[Mapping[str, Any]], settings: Settings, first: int
) -> Iterator[tuple[int, bytes]]:
    for n, payload in enumerate(payloads, first):
        try:
            encoded = _encoded(job_type, payload, settings)
        except InvalidPayload as error:
            raise type(error)(f"Payload number {n}: {error}") from None
        yield n, encoded


def _encoded(job_type: JobType, payload: Mapping[str, Any], settings: Settings) -> bytes:
    if type(payload) is not dict and not isinstance(payload, Mapping):
        raise InvalidPayload(
            f"Payload of {job_type.name}: it must be a dict of field names to values, not {type(payload).__name__}."
        )
    return job_type.signature.encode(payload, limit=settings.max_payload_bytes)


def new_job(job_type: JobType, encoded: bytes, options: Options, settings: Settings) -> NewJob:
    """What the engine is told. Raises UnknownQueue."""
    key = options.idempotency_key or ""
    return NewJob(
        id=uuid7(),
        queue=settings.declared(options.queue or job_type.queue or settings.first_queue),
        type=job_type.name,
        payload=encoded.decode(),
        priority=int(job_type.priority if options.priority is None else options.priority),
        tenant=options.tenant,
        max_attempts=int(options.max_attempts or job_type.max_attempts or settings.max_attempts),
        context=_context(options),
        run_at=options.run_at and options.run_at.astimezone(UTC),  # where adding is not done on a wall clock
        delay=options.delay or timedelta(0),
        key=key,
        payload_hash=payload_hash(job_type.first_name, encoded) if key else b"",
        retention=settings.idempotency_retention,
    )


def _context(options: Options) -> str:
    context = current_context() | (options.context or {})
    if not context:
        return "{}"
    check_context(context)
    return json.dumps(context)


def _alone(shared: NewJob, row: BulkRow) -> NewJob:
    return shared._replace(
        id=row.id,
        payload=row.payload,
        delay=shared.delay + timedelta(seconds=row.offset),
        key=row.key,
        payload_hash=row.payload_hash,
    )
