"""Did the promises hold? Pure: from the evidence alone.

Each check yields sentences about what is wrong. What P4 allows (a run that lost its lease by a silence that was made,
or by its time-out, and went on beside the next one) is counted with its reason and is no fault. The record of a lost
run says when its lease was taken: that must be while its process was silent, after a lease without a renewal, or right
after that, before it had time to renew.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

from faults.evidence import LOST, TIMED_OUT, Evidence, NotedRun, Silence

# Of a lease: a process that can renew its leases does so within that time. It is a third, and a machine may be busy.
RENEWED_WITHIN = 0.4
CLOCK_ERROR = 0.2  # seconds, in comparing the database's clock with the journal's
ONCE = {"record_atomic", "swallow"}
MOST_KEPT = 10
PID = re.compile(r"\(.*-(\d+)-[0-9a-f]{12}\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Counts, and what is wrong. ``two_at_once``: how often P4 allowed it, by reason."""

    acknowledged: int
    succeeded: int
    dead: int
    runs: int
    failed_runs: int
    lost_runs: int
    two_at_once: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def judge(evidence: Evidence) -> Verdict:
    ended = evidence.ended
    lost = sum(len(job.losses) for job in ended)
    overlaps = list(overlapping(evidence.runs))
    excuses = [excuse(evidence, *pair) for pair in overlaps]
    return Verdict(
        acknowledged=len(evidence.acknowledged),
        succeeded=sum(job.status == "succeeded" for job in ended),
        dead=sum(job.status == "dead" for job in ended),
        runs=len(evidence.runs),
        failed_runs=sum(len(job.errors) for job in ended) - lost,
        lost_runs=lost,
        two_at_once=Counter(reason for reason in excuses if reason),
        recoveries=list(recoveries(evidence)),
        wrong=[
            *jobs_not_ended_once(evidence),
            *wrong_attempts(evidence),
            *wrong_effects(evidence),
            *stale_endings(evidence),
            *losses_without_reason(evidence),
            *(_at_once(*pair) for pair, reason in zip(overlaps, excuses, strict=True) if reason is None),
            *(f"A session is left: {session}" for session in evidence.sessions),
        ],
    )


def jobs_not_ended_once(evidence: Evidence) -> Iterator[str]:
    """P1 and P2."""
    times = Counter(job.job_id for job in evidence.ended)
    jobs = evidence.unfinished | set(times)
    yield from _named("acknowledged jobs are nowhere", evidence.acknowledged - jobs)
    yield from _named("jobs have not ended", evidence.unfinished)
    yield from _named("jobs have two endings", {job_id for job_id, count in times.items() if count > 1})
    yield from _named("jobs are unfinished and have an ending", evidence.unfinished & set(times))
    yield from _named("orders have no job", evidence.orders - jobs)
    yield from _named("jobs have no order", jobs - evidence.orders)


def wrong_attempts(evidence: Evidence) -> Iterator[str]:
    """Each attempt that was not refunded either failed, with its error on record, or succeeded."""
    for job in evidence.ended:
        counted = len(job.errors) + (job.status == "succeeded")
        if job.attempts != counted and not (len(job.errors) == MOST_KEPT and job.attempts > counted):
            yield f"{job.type} {job.job_id} {job.status}: {job.attempts} attempts, {len(job.errors)} errors."


def wrong_effects(evidence: Evidence) -> Iterator[str]:
    """P10: exactly once, or not at all. The others: at least once, and once for each run at most."""
    starts = Counter(run.job_id for run in evidence.runs)
    for job in evidence.ended:
        least = int(job.status == "succeeded")
        most = least if job.type in ONCE else starts[job.job_id]
        done = (evidence.atomic_effects if job.type in ONCE else evidence.effects)[job.job_id]
        if not least <= done <= most:
            yield f"{job.type} {job.job_id} {job.status}: {done} effects of {starts[job.job_id]} runs."


def stale_endings(evidence: Evidence) -> Iterator[str]:
    """P3: what is written is the outcome of the newest run, never that of one which lost its lease."""
    newest = {run.job_id: run.token for run in evidence.runs}
    for job in evidence.ended:
        if job.result is not None and job.result != newest.get(job.job_id):
            yield f"{job.type} {job.job_id}: the outcome of token {job.result}, the newest is {newest.get(job.job_id)}."


def losses_without_reason(evidence: Evidence) -> Iterator[str]:
    """P4 and P5: a run is lost only by a death or a silence, and never by an outage of the database alone."""
    for job in evidence.ended:
        for error in job.losses:
            if reason_of_loss(evidence, error) is None:
                yield f"{job.type} {job.job_id}: lost without a reason: {error['message']} at {error.get('at')}"


def reason_of_loss(evidence: Evidence, error: Mapping[str, Any]) -> str | None:
    """Why the process could not keep the lease at the instant at which it was taken."""
    pid, lost_at = _pid(error), _instant(evidence, error)
    if pid is None or lost_at is None:
        return None
    if pid in evidence.deadly and evidence.deadly[pid] <= lost_at:
        return "died"
    explaining = (s for s in evidence.silences if s.pid == pid and explains(s, lost_at, evidence.lease))
    return next((silence.why for silence in explaining), None)


def explains(silence: Silence, lost_at: float, lease: float) -> bool:
    """The lease must have run out within the silence; it may be taken until the process had time to renew it."""
    if silence.until is None:
        return silence.since <= lost_at
    time_to_renew = RENEWED_WITHIN * lease
    ran_out = silence.since - time_to_renew + lease
    return ran_out <= min(lost_at, silence.until) and lost_at <= silence.until + time_to_renew


def overlapping(runs: Iterable[NotedRun]) -> Iterator[tuple[NotedRun, NotedRun]]:
    """Pairs of runs of one job at once, the older first."""
    by_job: dict[str, list[NotedRun]] = {}
    for run in runs:
        by_job.setdefault(run.job_id, []).append(run)
    for its_runs in by_job.values():
        for old, new in combinations(its_runs, 2):
            if old.is_going_on_at(new.started_at):
                yield old, new


def excuse(evidence: Evidence, old: NotedRun, new: NotedRun) -> str | None:
    """P4: before the newer run started, the older one was given up by its time-out, or lost for a reason."""
    for error in (error for job in evidence.ended if job.job_id == old.job_id for error in job.errors):
        given_up_at = _instant(evidence, error)
        if error.get("attempt") != old.attempt or given_up_at is None or given_up_at > new.started_at + CLOCK_ERROR:
            continue
        if error["type"].endswith(TIMED_OUT):
            return "time-out"
        if error["type"].endswith(LOST) and _pid(error) == old.pid:
            return reason_of_loss(evidence, error)
    return None


def recoveries(evidence: Evidence) -> Iterator[float]:
    """From the beginning of a silence to the next start of each job that it cut off."""
    for silence in evidence.silences:
        for old in evidence.runs:
            if old.pid == silence.pid and old.started_at < silence.since <= (old.ended_at or silence.since):
                later = [run.started_at for run in evidence.runs if run.job_id == old.job_id and run.token > old.token]
                yield from [min(later) - silence.since] if later else []


def _pid(error: Mapping[str, Any]) -> int | None:
    match = PID.search(error["message"])
    return int(match.group(1)) if match else None


def _instant(evidence: Evidence, error: Mapping[str, Any]) -> float | None:
    """By the journal's clock."""
    return datetime.fromisoformat(error["at"]).timestamp() - evidence.epoch if "at" in error else None


def _at_once(old: NotedRun, new: NotedRun) -> str:
    pids = f"{old.pid} and {new.pid}"
    return f"{old.job_id}: runs in the processes {pids} at once, and the older was not silent for a lease."


def _named(what: str, job_ids: Iterable[str]) -> Iterator[str]:
    if names := sorted(job_ids):
        yield f"{len(names)} {what}: {', '.join(names[:3])}"
