"""Who may do what: permissions of our own, and none that Django's admin would give to editors of rows."""

import pytest
from django.contrib.auth.models import Permission

pytestmark = pytest.mark.django_db

OURS = {
    "view_job",
    "cancel_job",
    "run_job",
    "reveal_payload",
    "view_deadjob",
    "retry_deadjob",
    "discard_deadjob",
    "view_deadgroup",
    "view_jobhistory",
    "view_queue",
    "pause_queue",
    "view_worker",
    "view_bulkoperation",
    "view_auditentry",
}


def test_there_are_the_permissions_that_the_guide_names():
    found = set(Permission.objects.filter(content_type__app_label="django_jobs").values_list("codename", flat=True))
    assert found >= OURS
    writable = {"job", "deadjob", "deadgroup", "jobhistory", "queue", "worker", "bulkoperation", "auditentry"}
    assert not found & {f"{verb}_{model}" for verb in ("add", "change", "delete") for model in writable}
