from django.db import models


class Order(models.Model):
    """The business data: written in the transaction that enqueues its job."""

    job_id = models.UUIDField(primary_key=True)

    def __str__(self):
        return f"order of {self.job_id}"


class Effect(models.Model):
    """What a run did. Not unique, so that a second run is seen."""

    job_id = models.UUIDField(db_index=True)
    token = models.BigIntegerField()
    atomic = models.BooleanField(default=False)

    def __str__(self):
        return f"effect of {self.job_id}"
