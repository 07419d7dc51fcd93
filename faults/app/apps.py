import os

from django.apps import AppConfig


class FaultsConfig(AppConfig):
    name = "faults.app"
    label = "faults_app"

    def ready(self) -> None:
        """``FAULTS_RELEASE=old`` is a build that knows less; a round of a fault is shorter than stock patience."""
        from django_jobs.worker import endings

        from . import jobs  # noqa: F401

        endings.UNTAKEN_SECONDS = 1.0
        if os.environ.get("FAULTS_RELEASE") != "old":
            from . import newer_jobs  # noqa: F401
