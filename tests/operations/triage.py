"""What the tests of triage share."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs import Actor, DeadFilter, start_bulk
from django_jobs.models import BulkOperation, DeadGroup, DeadGroupChange, DeadGroupHour, DeadJob, Job, JobHistory
from django_jobs.operations.bulk_step import bulk_step
from django_jobs.operations.dead_group_counts import fold_changes
from tests.factories import DeadJobFactory

ANNA = Actor(name="anna", id="7", source="admin")


@pytest.fixture
def no_changes(transactional_db):
    """What the emptying of the tables after another test left behind on SQLite."""
    for model in (DeadGroupChange, DeadGroup, DeadGroupHour):
        model.objects.all().delete()


def ago(**span):
    return timezone.now() - timedelta(**span)


def die(size=1, **fields):
    """Dead jobs as they stand in the table, in the order of their deaths."""
    return DeadJobFactory.create_many(size, **{"failed_at": timezone.now()} | fields)


def fold():
    while fold_changes():
        pass


def retry_all(filter=None, **options):
    return start_bulk("retry", filter or DeadFilter(), actor=ANNA, **options)


def carry_out(info):
    """As maintenance does it, until it is over or waits. Returns the operation's row."""
    while bulk_step(info.id):
        pass
    return BulkOperation.objects.get(pk=info.id)


def whereabouts():
    return {model.__name__: model.objects.count() for model in (DeadJob, Job, JobHistory)}
