"""Who may do what. Each right is a permission of this app; none is implied by another."""

from __future__ import annotations

from django.http import HttpRequest

APP = "django_jobs"

RETRY = "retry_deadjob"
DISCARD = "discard_deadjob"
CANCEL = "cancel_job"
PAUSE = "pause_queue"
RUN = "run_job"
REVEAL = "reveal_payload"
ADD_SCHEDULE = "add_schedule"
CHANGE_SCHEDULE = "change_schedule"
ALERT = "change_alert"
ALL = (RETRY, DISCARD, CANCEL, PAUSE, RUN, REVEAL)


def may(request: HttpRequest, right: str) -> bool:
    return request.user.has_perm(f"{APP}.{right}")


def rights_of(request: HttpRequest) -> dict[str, bool]:
    """For templates: each right and whether the viewer has it."""
    return {right: may(request, right) for right in ALL}
