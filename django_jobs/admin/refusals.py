"""What an operation refused, in the viewer's language."""

from __future__ import annotations

from django.utils.translation import gettext as _

from django_jobs.exceptions import DjangoJobsError, InvalidPayload


def told(error: DjangoJobsError) -> str:
    """Operations speak the active language; of a payload, pydantic says in its own what is wrong."""
    if isinstance(error, InvalidPayload):
        return _("The payload does not fit its handler: %s") % error
    return str(error)
