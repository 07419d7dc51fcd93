"""Did the promises hold? Read from the tables, the business data and the journal, when all processes have ended.

Each check yields sentences about what is wrong. What P4 allows (a run that lost its lease by a silence that was made, or
by its time-out, and went on beside the next one) is counted with its reason and is no fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from django.db import connection

from django_jobs.models import DeadJob, Job, JobHistory
from faults import journal
from faults.app.models import Effect, Order
from faults.arena import Arena, Silence

RENEWED_BEFORE = 1 / 3  # of a lease: a silence may begin so long after the last renewal
TIMED_OUT = {"hang"}
LOST = "WorkerLost"
MOST_KEPT = 10
PID = re.compile(r"\(.*-(\d+)-[0-9a-f]{12}\)")


@dataclass(slots=True, kw_only=True)
class Verdict:
    acknowledged: int = 0
    succeeded: int = 0
    dead: int = 0
    runs: int = 0
    failed_runs: int = 0
    lost_runs: int = 0
    twice_at_once: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def recovery(self) -> tuple[float, float] | None:
        """Median and maximum, in seconds."""
        return (median(self.recoveries), max(self.recoveries)) if self.recoveries else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A job where it ended."""

    job_id: str
    type: str
    status: str
    attempts: int
    errors: Sequence[dict[str, Any]]

    @property
    def losses(self) -> list[dict[str, Any]]:
        return [error for error in self.errors if error["type"].endswith(LOST)]


def reach(arena: Arena) -> Verdict:
    ended = [*_history(), *_dead()]
    runs = journal.noted_runs()
    for silence in arena.silences:
        if silence.until is None:
            journal.end_of_process(runs, silence.pid, silence.since)
    verdict = Verdict(
        acknowledged=len(journal.read(journal.ACKNOWLEDGED)),
        succeeded=sum(job.status == "succeeded" for job in ended),
        dead=sum(job.status == "dead" for job in ended),
        runs=len(runs),
        failed_runs=sum(len(job.errors) - len(job.losses) for job in ended),
        lost_runs=sum(len(job.losses) for job in ended),
        recoveries=[*arena.recoveries, *_recoveries(arena, runs)],
    )
    verdict.faults += _ended_once(ended)
    verdict.faults += _attempts(ended)
    verdict.faults += _effects(ended, runs)
    verdict.faults += _losses(arena, ended)
    verdict.faults += _one_run_at_a_time(arena, ended, runs, verdict.twice_at_once)
    verdict.faults += _nothing_left()
    return verdict


def _history() -> Iterator[Ended]:
    for row in JobHistory.objects.values("job_id", "type", "status", "attempts", "errors"):
        yield Ended(job_id=str(row.pop("job_id")), **row)


def _dead() -> Iterator[Ended]:
    for row in DeadJob.objects.values("id", "type", "attempts", "errors"):
        yield Ended(job_id=str(row.pop("id")), status="dead", **row)


def _ended_once(ended: Sequence[Ended]) -> Iterator[str]:
    """P1 and P2."""
    times = Counter(job.job_id for job in ended)
    acknowledged = {job_id for (job_id,) in journal.read(journal.ACKNOWLEDGED)}
    orders = {str(job_id) for job_id in Order.objects.values_list("job_id", flat=True)}
    unfinished = {str(job_id) for job_id in Job.objects.values_list("pk", flat=True)}
    yield from _named("acknowledged jobs are nowhere", acknowledged - set(times) - unfinished)
    yield from _named("acknowledged jobs have not ended", acknowledged & unfinished)
    yield from _named("jobs have two endings", {job_id for job_id, count in times.items() if count > 1})
    yield from _named("jobs are unfinished and have an ending", unfinished & set(times))
    yield from _named("orders have no job", orders - set(times) - unfinished)
    yield from _named("jobs have no order", (set(times) | unfinished) - orders)
    yield from _named("acknowledged orders are gone", acknowledged - orders)


def _attempts(ended: Sequence[Ended]) -> Iterator[str]:
    """Each attempt that was not refunded either failed, with its error on record, or succeeded."""
    for job in ended:
        counted = len(job.errors) + (job.status == "succeeded")
        if job.attempts != counted and not (len(job.errors) == MOST_KEPT and job.attempts > counted):
            yield f"{job.type} {job.job_id} {job.status}: {job.attempts} attempts, {len(job.errors)} errors."


def _effects(ended: Sequence[Ended], runs: dict[int, journal.NotedRun]) -> Iterator[str]:
    """P10, and at least once for the others."""
    plain, atomic = Counter(), Counter()
    for job_id, is_atomic in Effect.objects.values_list("job_id", "atomic"):
        (atomic if is_atomic else plain)[str(job_id)] += 1
    starts = Counter(run.job_id for run in runs.values())
    for job in ended:
        once = job.type in ("record_atomic", "swallow")
        done = (atomic if once else plain)[job.job_id]
        least = job.status == "succeeded"
        if not least <= done <= (least if once else starts[job.job_id]):
            yield f"{job.type} {job.job_id} {job.status}: {done} effects of {starts[job.job_id]} runs."


def _losses(arena: Arena, ended: Sequence[Ended]) -> Iterator[str]:
    """P4 and P5: a run is lost only by a death or a silence, and never to an outage of the database alone."""
    deadly = {int(pid) for _, event, _, _, _, pid in journal.read(journal.RUNS) if event == "die"}
    known = deadly | {silence.pid for silence in arena.silences}
    for job in ended:
        for error in job.losses:
            match = PID.search(error["message"])
            if match is None or int(match.group(1)) not in known:
                yield f"{job.type} {job.job_id}: lost without a reason: {error['message']} at {error.get('at')}"


def _one_run_at_a_time(
    arena: Arena, ended: Sequence[Ended], runs: dict[int, journal.NotedRun], allowed: Counter[str]
) -> Iterator[str]:
    """P4. The old run must have been silent for a lease, counted from a renewal, when the new one started."""
    types = {job.job_id: job.type for job in ended}
    by_job: dict[str, list[journal.NotedRun]] = {}
    for run in sorted(runs.values(), key=lambda run: run.token):
        by_job.setdefault(run.job_id, []).append(run)
    for job_id, its_runs in by_job.items():
        for old, new in _overlapping(its_runs):
            if reason := _excuse(arena, types.get(job_id, ""), old, new):
                allowed[reason] += 1
            else:
                yield f"{types.get(job_id)} {job_id}: runs of {old.pid} and {new.pid} at once, and nobody was silent."


def _overlapping(runs: Sequence[journal.NotedRun]) -> Iterator[tuple[journal.NotedRun, journal.NotedRun]]:
    for position, new in enumerate(runs):
        for old in runs[:position]:
            if old.ended_at is None or old.ended_at > new.started_at:
                yield old, new


def _excuse(arena: Arena, type_name: str, old: journal.NotedRun, new: journal.NotedRun) -> str | None:
    if type_name in TIMED_OUT:
        return "time-out"
    least = arena.lease * (1 - RENEWED_BEFORE)
    for silence in arena.silences:
        if silence.pid == old.pid and silence.since + least <= new.started_at:
            return silence.why
    return None


def _recoveries(arena: Arena, runs: dict[int, journal.NotedRun]) -> Iterator[float]:
    """From the beginning of a silence to the next start of each job that it cut off."""
    for silence in arena.silences:
        for old in runs.values():
            if old.pid == silence.pid and old.started_at < silence.since and _was_cut_off(old, silence):
                later = [new.started_at for new in runs.values() if new.job_id == old.job_id and new.token > old.token]
                if later:
                    yield min(later) - silence.since


def _was_cut_off(run: journal.NotedRun, silence: Silence) -> bool:
    return run.ended_at is None or run.ended_at >= silence.since


def _nothing_left() -> Iterator[str]:
    """No session, so no lock either."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, state, query FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        yield from (f"A session is left: {row}" for row in cursor.fetchall())


def _named(what: str, job_ids: set[str]) -> Iterator[str]:
    if job_ids:
        yield f"{len(job_ids)} {what}: {', '.join(sorted(job_ids)[:3])}"
