"""Rows as they stand in the tables. A job is ready unless a trait says otherwise."""

from datetime import timedelta

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from django_jobs import models
from django_jobs.ids import uuid7

LEASE = timedelta(seconds=60)


class EnvelopeFactory(DjangoModelFactory):
    class Meta:
        abstract = True

    @classmethod
    def create_many(cls, size, **fields):
        """As ``create_batch``, in few statements."""
        return cls._meta.model.objects.bulk_create(cls.build_batch(size, **fields))

    id = factory.LazyFunction(uuid7)
    queue = "default"
    type = "noop"
    payload = factory.LazyFunction(dict)
    max_attempts = 5


class JobFactory(EnvelopeFactory):
    class Meta:
        model = models.Job

    class Params:
        scheduled = factory.Trait(
            status="scheduled", run_at=factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1))
        )
        due = factory.Trait(
            status="scheduled", run_at=factory.LazyFunction(lambda: timezone.now() - timedelta(minutes=1))
        )
        processing = factory.Trait(
            status="processing",
            attempts=1,
            locked_by="another-worker",
            locked_until=factory.LazyFunction(lambda: timezone.now() + LEASE),
            lease_token=factory.Sequence(lambda n: 10**12 + n),
        )
        lapsed = factory.Trait(
            processing=True, locked_until=factory.LazyFunction(lambda: timezone.now() - timedelta(seconds=1))
        )

    ready_seq = factory.Sequence(lambda n: n + 1)


class DeadJobFactory(EnvelopeFactory):
    class Meta:
        model = models.DeadJob

    attempts = 5
    failed_at = factory.LazyFunction(timezone.now)
    reason = "exhausted"
    error_type = "ValueError"
    error_summary = "no such invoice"
    last_error = "no such invoice"
    fingerprint = "1:0123456789abcdef"


class JobHistoryFactory(DjangoModelFactory):
    class Meta:
        model = models.JobHistory

    id = factory.LazyFunction(uuid7)
    job_id = factory.LazyFunction(uuid7)
    queue = "default"
    type = "noop"
    status = "succeeded"
    attempts = 1
    enqueued_at = factory.LazyFunction(timezone.now)


class QueueFactory(DjangoModelFactory):
    class Meta:
        model = models.Queue

    class Params:
        paused = factory.Trait(paused_at=factory.LazyFunction(timezone.now))

    name = "default"


class IdempotencyKeyFactory(DjangoModelFactory):
    class Meta:
        model = models.IdempotencyKey

    class Params:
        expired = factory.Trait(expires_at=factory.LazyFunction(lambda: timezone.now() - timedelta(seconds=1)))

    queue = "default"
    key = factory.Sequence(lambda n: f"key-{n}")
    job_id = factory.LazyFunction(uuid7)
    payload_hash = b"\x00" * 32
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(days=14))


class WorkerFactory(DjangoModelFactory):
    class Meta:
        model = models.Worker

    id = factory.Sequence(lambda n: f"worker-{n}")
    host = "localhost"
    pid = factory.Sequence(lambda n: n + 1)
    queues = factory.LazyFunction(lambda: ["default"])
    version = "0"


class JobCountFactory(DjangoModelFactory):
    class Meta:
        model = models.JobCount

    minute = factory.LazyFunction(lambda: timezone.now().replace(second=0, microsecond=0))
    process = "worker"
    queue = "default"
    type = "noop"
    outcome = "succeeded"
    count = 1
    total_ms = 10
    histogram = factory.LazyFunction(lambda: [0] * 24)
