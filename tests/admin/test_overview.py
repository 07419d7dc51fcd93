"""The overview says when the work cannot go on."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.models import Leadership

from .support import page

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
WORDS = "Nobody leads the maintenance."


def test_that_nobody_leads_is_said_with_what_to_run(boss):
    text = page(boss, "job_overview")
    assert WORDS in text
    assert "runjobscheduler" in text


@pytest.mark.parametrize(("ended", "said"), [(-MINUTE, False), (MINUTE / 2, False), (2 * MINUTE, True)], ids=str)
def test_a_leader_that_was_killed_has_a_minute_to_be_followed(boss, ended, said):
    Leadership.objects.create(name="maintenance", holder="w-1", token=1, expires_at=timezone.now() - ended)
    assert (WORDS in page(boss, "job_overview")) is said


def test_another_leadership_does_not_count(boss):
    Leadership.objects.create(name="other", holder="w-1", token=1, expires_at=timezone.now() + MINUTE)
    assert WORDS in page(boss, "job_overview")
