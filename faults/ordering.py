"""Enqueueing as an application does it: the job and its business data in one transaction."""

from uuid import UUID

from django.db import Error, connection, transaction

from django_jobs.handle import JobHandle
from faults import journal
from faults.app.models import Order


def place_order(handle: JobHandle, **payload: object) -> UUID | None:
    """The job's id once its commit was acknowledged. None: it may stand or not, but then with its order."""
    try:
        with transaction.atomic():
            job_id = handle.enqueue(**payload).id
            Order.objects.create(job_id=job_id)
    except Error as error:
        journal.write(journal.REFUSED, journal.now(), repr(error))
        connection.close()
        return None
    journal.write(journal.ACKNOWLEDGED, job_id)
    return job_id
