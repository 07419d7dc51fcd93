"""PostgreSQL statements on the caller's Django connection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, IntegrityError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import QueryCanceled

from django_jobs.chunks import chunks
from django_jobs.engines.protocol import NoPartition
from django_jobs.engines.values import BulkPlaced, BulkRow, KeyHolder, NewJob, Placed
from django_jobs.models.old_partitions import drop_oldest, freeze_closed
from django_jobs.models.partitions import add_partitions

from .connecting import lacks_partition
from .queries import query

CHUNK = 1000

# What django_jobs_enqueue() answers.
PLACED = (
    Placed(status="scheduled"),
    Placed(status="pending"),
    Placed(status="pending", asleep=True),
)
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class PostgresqlStatements:
    def enqueue(self, connection: BaseDatabaseWrapper, job: NewJob) -> Placed | None:
        if job.key:
            row = _one(connection, "enqueue_with_key", _columns(job))
            return Placed(status=row[0], asleep=row[1]) if row else None
        with connection.cursor() as cursor:
            cursor.execute(query("enqueue"), _arguments(job))
            return PLACED[cursor.fetchone()[0]]

    def enqueue_many(
        self, connection: BaseDatabaseWrapper, shared: NewJob, rows: Iterable[BulkRow], *, keyed: bool
    ) -> BulkPlaced:
        statuses = list((_insert_with_keys if keyed else _copy)(connection, shared, rows))
        asleep = "pending" in statuses and _one(connection, "someone_asleep", {"queue": shared.queue})[0]
        return BulkPlaced(statuses=statuses, asleep=asleep)

    def enqueue_each(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> list[Placed]:
        with connection.cursor() as cursor:
            cursor.execute(query("enqueue_each"), [f"[{','.join(map(_encoded, jobs))}]"])
            return [PLACED[answer] for (answer,) in cursor.fetchall()]

    def key_holder(self, connection: BaseDatabaseWrapper, queue: str, key: str) -> KeyHolder | None:
        row = _one(connection, "read_key", {"queue": queue, "key": key})
        return KeyHolder(job_id=row[0], payload_hash=bytes(row[1]), free=row[2]) if row else None

    def free_key(self, connection: BaseDatabaseWrapper, queue: str, key: str, job_id: UUID) -> None:
        with connection.cursor() as cursor:
            cursor.execute(query("free_key"), {"queue": queue, "key": key, "job_id": job_id})

    def wake(self, connection: BaseDatabaseWrapper, queue: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(query("wake"), {"queue": queue})

    def begin_run(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def complete_within(
        self,
        connection: BaseDatabaseWrapper,
        job_id: UUID,
        token: int,
        *,
        history_id: UUID,
        duration_ms: int,
        result: Any,
        metrics: Any,
    ) -> bool:
        parameters = {
            "id": job_id,
            "token": token,
            "history_id": history_id,
            "duration_ms": duration_ms,
            "result": None if result is None else json.dumps(result),
            "metrics": None if metrics is None else json.dumps(metrics),
        }
        with _naming_missing_partition():
            return _one(connection, "complete_within", parameters) is not None

    def requeue_dead(
        self, connection: BaseDatabaseWrapper, ids: Sequence[UUID], delay: timedelta
    ) -> list[tuple[UUID, str]]:
        with connection.cursor() as cursor:
            terms: dict[str, Any] = {"ids": list(ids), "delay": _exact(delay)}
            cursor.execute(query("requeue_dead"), terms)
            moved: list[tuple[UUID, str]] = cursor.fetchall()
        return moved

    def discard_dead(self, connection: BaseDatabaseWrapper, ids: Mapping[UUID, UUID]) -> list[UUID]:
        terms: dict[str, Any] = {"ids": list(ids), "history_ids": list(ids.values())}
        with _naming_missing_partition(), connection.cursor() as cursor:
            cursor.execute(query("discard_dead"), terms)
            return [job_id for (job_id,) in cursor.fetchall()]

    def fold_dead_groups(self, connection: BaseDatabaseWrapper, limit: int, release: str) -> int:
        folded: int = _one(connection, "fold_dead_groups", {"limit": limit, "release": release})[0]
        return folded

    def wait_briefly(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")

    def stop_after(self, connection: BaseDatabaseWrapper, limit: timedelta) -> None:
        with connection.cursor() as cursor:
            milliseconds = str(limit // timedelta(milliseconds=1))
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [milliseconds])

    def was_stopped(self, error: DatabaseError) -> bool:
        return isinstance(error.__cause__, QueryCanceled)

    def add_partitions(self, connection: BaseDatabaseWrapper, days: Iterable[date]) -> int:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            return add_partitions(cursor, days)

    def prune_history(self, connection: BaseDatabaseWrapper, before: date, limit: int) -> int:
        with connection.cursor() as cursor:
            return 1 if drop_oldest(cursor, before) else 0

    def freeze_history(self, connection: BaseDatabaseWrapper, before: date) -> int:
        with connection.cursor() as cursor:
            return freeze_closed(cursor, before)

    def server_time(self, connection: BaseDatabaseWrapper) -> datetime:
        return _server_time(connection)


@contextmanager
def _naming_missing_partition() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        if lacks_partition(error.__cause__):
            raise NoPartition(str(error)) from error
        raise


def _one(connection: BaseDatabaseWrapper, name: str, parameters: Mapping[str, Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query(name), parameters)
        return cursor.fetchone()


def _columns(job: NewJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "queue": job.queue,
        "type": job.type,
        "payload": job.payload,
        "priority": job.priority,
        "tenant": job.tenant,
        "max_attempts": job.max_attempts,
        "context": job.context,
        "run_at": job.run_at,
        "delay": _exact(job.delay),
        "key": job.key,
        "payload_hash": job.payload_hash,
        "retention": job.retention,
    }


def _arguments(job: NewJob) -> list[Any]:
    """Of django_jobs_enqueue(). No delay goes as NULL, which is quicker to encode."""
    return [
        job.id,
        job.queue,
        job.type,
        job.payload,
        job.priority,
        job.tenant,
        job.max_attempts,
        job.context,
        job.run_at,
        _exact(job.delay) if job.delay else None,
    ]


def _exact(duration: timedelta) -> str:
    """An interval in hours. One in days would take 23 or 25 hours for a day on which the session's clock changes."""
    seconds, rest = divmod(duration, timedelta(seconds=1))
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest.microseconds:06}"


def _encoded(job: NewJob) -> str:
    """A JSON object; ``payload`` and ``context`` are JSON already."""
    plain = {
        "id": job.id.hex,
        "queue": job.queue,
        "type": job.type,
        "priority": job.priority,
        "tenant": job.tenant,
        "max_attempts": job.max_attempts,
        "run_at": job.run_at and job.run_at.isoformat(),
        "delay": job.delay.total_seconds(),
    }
    return f'{json.dumps(plain)[:-1]},"payload":{job.payload},"context":{job.context}}}'


def _server_time(connection: BaseDatabaseWrapper) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    # Where DATABASES says so it comes in a zone, and what is added to it would be added to a wall clock.
    return now.astimezone(UTC)


def _copy(connection: BaseDatabaseWrapper, shared: NewJob, rows: Iterable[BulkRow]) -> Iterator[str]:
    """Write the rows in COPY's text format; yields their statuses."""
    now = _server_time(connection)
    start = (shared.run_at or now) + shared.delay
    head = f"\t{_text(shared.queue)}\t{_text(shared.type)}\t"
    tail = f"\t{shared.priority}\t{_text(shared.tenant)}\t{shared.max_attempts}\t{_text(shared.context)}\t"
    at_start = _due(tail, start, 0.0, now)
    statuses: list[str] = []
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(query("copy_jobs")) as copy:
        for chunk in chunks(rows, CHUNK):
            lines = []
            for row in chunk:
                ending, status = at_start if not row.offset else _due(tail, start, row.offset, now)
                payload = row.payload if "\\" not in row.payload else row.payload.replace("\\", "\\\\")
                lines.append(f"{row.id.hex}{head}{payload}{ending}")
                statuses.append(status)
            copy.write("".join(lines))
    return iter(statuses)


def _due(tail: str, start: datetime, offset: float, now: datetime) -> tuple[str, str]:
    due = start + timedelta(seconds=offset) if offset else start
    status = "pending" if due <= now else "scheduled"
    return f"{tail}{due.isoformat()}\t{status}\n", status


def _text(value: str) -> str:
    return value.translate(_ESCAPES)


def _insert_with_keys(connection: BaseDatabaseWrapper, shared: NewJob, rows: Iterable[BulkRow]) -> Iterator[str | None]:
    for chunk in chunks(rows, CHUNK):
        placed = dict(_insert_chunk(connection, shared, chunk))
        for row in chunk:
            yield placed.get(row.id)


def _insert_chunk(connection: BaseDatabaseWrapper, shared: NewJob, chunk: Sequence[BulkRow]) -> list[tuple[UUID, str]]:
    delay = shared.delay.total_seconds()
    encoded = ",".join(
        f'{{"id":"{row.id}","payload":{row.payload},"delay":{delay + row.offset},'
        f'"key":{json.dumps(row.key)},"payload_hash":"{row.payload_hash.hex()}"}}'
        for row in chunk
    )
    with connection.cursor() as cursor:
        cursor.execute(query("enqueue_many_with_keys"), _columns(shared) | {"rows": f"[{encoded}]"})
        placed: list[tuple[UUID, str]] = cursor.fetchall()
    return placed
