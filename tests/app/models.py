from django.db import models


class Note(models.Model):
    text = models.TextField(unique=True)

    def __str__(self):
        return self.text
