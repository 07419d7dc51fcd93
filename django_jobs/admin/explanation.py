"""Why a job is not running, in the viewer's language and zone."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobs.exceptions import JobNotFound
from django_jobs.operations.explain import Reason, explain

SENTENCES = {
    "cancel_requested": gettext_lazy(
        "Its cancellation was asked for at %(since)s: unless this run succeeds, it ends as cancelled."
    ),
    "lease_ran_out": gettext_lazy(
        "Its worker %(worker)s is silent and its lease ran out at %(until)s: a rescue pass will give it "
        "another attempt."
    ),
    "running": gettext_lazy("It is with worker %(worker)s, attempt %(attempt)s; the lease is good until %(until)s."),
    "due": gettext_lazy("It is due: the next staging pass makes it ready."),
    "untaken": gettext_lazy(
        "No worker could take it since %(since)s (unknown type, or a payload that did not fit): it is "
        "offered again at %(run_at)s."
    ),
    "retry_delay": gettext_lazy("Attempt %(attempts)s failed: the next is due at %(run_at)s."),
    "scheduled": gettext_lazy("It is scheduled for %(run_at)s."),
    "no_worker": gettext_lazy("No worker that was seen in the last minute serves its queue %(queue)s."),
    "unknown_type": gettext_lazy("This build has no handler for %(type)s: a worker of the same build cannot run it."),
    "bad_payload": gettext_lazy("Its payload does not fit the handler of this build: %(error)s."),
    "suspect": gettext_lazy(
        "%(lost_runs)s of its runs were lost with their workers, so a process runs it only while it has "
        "no other such job."
    ),
    "next": gettext_lazy("Nothing is in its way: it is the next of its queue."),
}


def explanation(job_id: UUID) -> list[str]:
    """One sentence for each reason; none for a job that is dead or finished, whose page says so anyway."""
    try:
        reasons = explain(job_id)
    except JobNotFound:
        return []
    return [sentence(reason) for reason in reasons if reason.code not in ("dead", "finished")]


def sentence(reason: Reason) -> str:
    """A code that is not known here is told in the operation's own words."""
    detail = {name: _told(value) for name, value in reason.detail.items()}
    match reason.code:
        case "queue_paused" if reason.detail.get("until"):
            return _("Its queue %(queue)s is paused until %(until)s.") % detail
        case "queue_paused":
            return _("Its queue %(queue)s is paused until somebody resumes it.") % detail
        case "jobs_ahead" if reason.detail.get("at_least"):
            return _("%(count)s or more jobs of its queue are in front of it.") % detail
        case "jobs_ahead":
            return _("Jobs of its queue in front of it: %(count)s.") % detail
    known = SENTENCES.get(reason.code)
    try:
        return reason.sentence if known is None else str(known) % detail
    except KeyError:
        return reason.sentence


def _told(value: object) -> object:
    if isinstance(value, datetime):
        local = timezone.localtime(value)
        return f"{date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S}"
    if isinstance(value, int) and not isinstance(value, bool):
        return number_format(value, force_grouping=True)
    return value
