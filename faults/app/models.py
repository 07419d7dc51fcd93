"""The tables of the application under attack.

Managers are spelt out because the type checker sets Django up with the apps of the demo project only.
"""

from typing import ClassVar

from django.db import models


class Order(models.Model):
    """The business data: written in the transaction that enqueues its job."""

    job_id = models.UUIDField(primary_key=True)

    objects: ClassVar[models.Manager["Order"]] = models.Manager()

    def __str__(self) -> str:
        return f"order of {self.job_id}"


class Effect(models.Model):
    """What a run did. Not unique, so that a second run is seen."""

    job_id = models.UUIDField(db_index=True)
    token = models.BigIntegerField()
    atomic = models.BooleanField(default=False)

    objects: ClassVar[models.Manager["Effect"]] = models.Manager()

    def __str__(self) -> str:
        return f"effect of {self.job_id}"
