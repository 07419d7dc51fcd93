"""What the tables of django_jobs must say."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django_jobs import get_job
from django_jobs.exceptions import JobNotFound
from testproject.shop.demo.evidence import Evidence, JobRecord
from testproject.shop.demo.partner_server import MOODY_DELIVERIES, MOODY_PAUSE
from testproject.shop.demo.story import AskedJob, Scene, Story

from .verdict import Problems, check, differences, unequal

FAILING_ONCE = ("shop.send_receipt", "shop.award_points")
ERP_ATTEMPTS = 3
REFUNDED = (" snoozed", " handed_back")
CLOCK_STEP = timedelta(milliseconds=10)  # of file systems; SQLite's is a millisecond


@check
def no_job_is_missing(story: Story, evidence: Evidence) -> Problems:
    """Every job that was committed is in the tables, and no other."""
    yield from differences("job", map(_label, story.jobs()), map(_label, evidence.jobs.values()))


@check
def rolled_back_means_gone(story: Story, evidence: Evidence) -> Problems:
    """Of the jobs that a transaction or a savepoint took back, not one exists."""
    for job in story.taken_back():
        try:
            found = get_job(job.id)
        except JobNotFound:
            continue
        yield f"job {_label(job)} was rolled back but is {found.status}"


@check
def nothing_is_left(story: Story, evidence: Evidence) -> Problems:
    """No job is waiting or running any more."""
    for job in evidence.jobs.values():
        if job.status not in ("succeeded", "cancelled", "dead"):
            yield f"job {_label(job)} is still {job.status}, after {job.attempts} attempts. {job.error}"


@check
def each_ended_well(story: Story, evidence: Evidence) -> Problems:
    """Each job ended as it should: succeeded, cancelled or dead."""
    expected = {_label(job): "succeeded" for job in story.other_jobs}
    for scene, job in _ordered(story):
        expected[_label(job)] = _ending(scene, job)
    found = {_label(job): job.status for job in evidence.jobs.values()}
    yield from unequal("job", expected, found)


@check
def no_needless_attempt(story: Story, evidence: Evidence) -> Problems:
    """Each job ran as often as it had to, and not once more."""
    expected = {_label(job): 1 for job in story.other_jobs}
    for scene, job in _ordered(story):
        expected[_label(job)] = _attempts(scene, job, evidence)
    found = {_label(job): job.attempts for job in evidence.jobs.values()}
    yield from unequal("attempts of", expected, found)


@check
def every_run_was_counted(story: Story, evidence: Evidence) -> Problems:
    """The worker's counts agree with the tables."""
    counted = evidence.runs(story.worker)
    expected: Counter[str] = Counter()
    for job in evidence.jobs.values():
        if job.attempts:
            expected[f"{job.type} {job.status}"] += 1
            expected[f"{job.type} retrying"] += job.attempts - 1
    settled = {name: runs for name, runs in counted.items() if not name.endswith(REFUNDED)}
    yield from unequal("runs of", +expected, settled)


@check
def keys_hold(story: Story, evidence: Evidence) -> Problems:
    """A second enqueueing under the same key gave the first job again."""
    first: dict[str, str] = {}
    for scene in story.placed:
        job = next(job for job in scene.jobs if job.type == "shop.send_welcome_mail")
        if job.duplicate != (scene.customer in first) or job.id != first.setdefault(scene.customer, job.id):
            yield f"order {scene.number} got the welcome mail {job.id}, duplicate={job.duplicate}"
    reports = [(job.id, job.duplicate) for job in story.other_jobs if job.type == "shop.report_stock"]
    if reports != [(reports[0][0], False), (reports[0][0], True)]:
        yield f"the report was ordered twice and gave {reports}"


@check
def the_dead_are_named(story: Story, evidence: Evidence) -> Problems:
    """Each dead job says what killed it; equal failures form one group."""
    for job in _dead(evidence, "shop.sync_to_erp"):
        if job.reason != "exhausted" or "404 Not Found" not in job.error:
            yield f"job {_label(job)}: {job.reason}, {job.error!r}"
    for job in _dead(evidence, "shop.deliver_webhook"):
        if job.reason != "buried_by_handler" or "410 Gone" not in job.error:
            yield f"job {_label(job)}: {job.reason}, {job.error!r}"
    groups = {job.fingerprint for job in _dead(evidence, "shop.sync_to_erp")}
    if len(groups) != 1:
        yield f"the ERP failures form {len(groups)} groups"


@check
def nothing_is_early(story: Story, evidence: Evidence) -> Problems:
    """No review was asked for before its time, by the tables and by the mails."""
    shortest = timedelta(seconds=story.review_delay) - CLOCK_STEP
    for job in evidence.of_type("shop.ask_for_review"):
        if job.status == "succeeded" and (job.started_at is None or job.started_at - job.enqueued_at < shortest):
            yield f"job {_label(job)}: enqueued {job.enqueued_at}, started {job.started_at}"
    for mail in evidence.mails:
        if mail.kind == "review":
            waited = timedelta(seconds=mail.written_at - evidence.orders[mail.order].placed_at.timestamp())
            if waited < shortest:
                yield f"the mail about order {mail.order} was written {waited} after the order"


@check
def pauses_are_kept(story: Story, evidence: Evidence) -> Problems:
    """Refused deliveries came again under the same key, after the pause that was asked for."""
    repeated = 0
    for job in evidence.of_type("shop.deliver_webhook"):
        requests = evidence.requests_of(job)
        statuses = [request.status for request in requests]
        if job.status == "succeeded" and statuses == [503, 200]:
            repeated += 1
            if (pause := requests[1].at - requests[0].at) < MOODY_PAUSE:
                yield f"job {_label(job)} came again after {pause:.2f} s"
        elif job.status == "succeeded" and statuses != [200]:
            yield f"job {_label(job)} was answered {statuses}"
    if repeated != MOODY_DELIVERIES:
        yield f"{repeated} deliveries were repeated, expected {MOODY_DELIVERIES}"


def _ordered(story: Story) -> list[tuple[Scene, AskedJob]]:
    return [(scene, job) for scene in story.placed for job in scene.jobs if not job.duplicate]


def _ending(scene: Scene, job: AskedJob) -> str:
    match job.type:
        case "shop.sync_to_erp":
            return "dead"
        case "shop.deliver_webhook" if scene.endpoint_is_gone:
            return "dead"
        case "shop.ask_for_review" if scene.cancelled:
            return "cancelled"
    return "succeeded"


def _attempts(scene: Scene, job: AskedJob, evidence: Evidence) -> int:
    match job.type:
        case "shop.sync_to_erp":
            return ERP_ATTEMPTS
        case "shop.deliver_webhook" if not scene.endpoint_is_gone:
            return len(evidence.requests_of(evidence.jobs[job.id]))
        case "shop.ask_for_review" if scene.cancelled:
            return 0
        case name if name in FAILING_ONCE and scene.fails_once:
            return 2
    return 1


def _dead(evidence: Evidence, type_name: str) -> list[JobRecord]:
    return [job for job in evidence.of_type(type_name) if job.status == "dead"]


def _label(job: AskedJob | JobRecord) -> str:
    return f"{job.type} {job.id}"
