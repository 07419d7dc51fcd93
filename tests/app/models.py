from django.db import models


class Note(models.Model):
    text = models.TextField(unique=True)

    def __str__(self):
        return self.text


class Mark(models.Model):
    """What handlers under test leave behind, in the order it happened. Not unique, so that a second run is seen."""

    label = models.TextField()
    pid = models.IntegerField(default=0)

    def __str__(self):
        return self.label
