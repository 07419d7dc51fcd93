"""Dead jobs by type and error: what the list tells, and what the page of a group does."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.conf import get_settings
from django_jobs.models import BulkOperation, DeadJob, Job, JobHistory
from django_jobs.operations.bulk_step import bulk_step
from django_jobs.operations.dead_group_counts import fold_changes
from tests.factories import DeadJobFactory

from .support import page, url

pytestmark = pytest.mark.django_db

GROUP = {"type": "send_invoice", "fingerprint": "1:aa"}
ERROR = {"attempt": 3, "type": "KeyError", "message": "'total'", "traceback": "Traceback: in render, line 7"}


@pytest.fixture
def group():
    """Of 30 jobs: 20 of acme after three attempts, 10 of umbrella after one; the last death a minute ago."""
    now = timezone.now()
    same = GROUP | {"error_type": "KeyError", "error_summary": "'total'", "errors": [ERROR]}
    older = DeadJobFactory.create_many(
        20, **same, tenant="acme", attempts=3, max_attempts=3, failed_at=now - timedelta(hours=3)
    )
    newer = DeadJobFactory.create_many(
        10, **same, tenant="umbrella", attempts=1, max_attempts=3, failed_at=now - timedelta(minutes=1)
    )
    return older + newer


def words(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_list_tells_of_each_group_its_error_size_and_times(boss, group):
    DeadJobFactory(type="other", error_type="OSError", error_summary="disk full", fingerprint="1:bb")
    text = words(page(boss, "deadjob_groups"))
    assert "31 dead jobs in all." in text
    assert "KeyError &#x27;total&#x27; send_invoice 30" in text
    assert "3 h ago 1 min ago" in text
    assert text.index("send_invoice") < text.index("other")
    assert "Deaths by hour: 30 in all, at most" in page(boss, "deadjob_groups")


@pytest.mark.parametrize(
    ("query", "first"), [({}, "send_invoice"), ({"order": "last_seen"}, "other"), ({"error": "disk"}, "other")]
)
def test_the_list_is_ordered_and_narrowed(boss, group, query, first):
    DeadJobFactory(type="other", error_type="OSError", error_summary="disk full", fingerprint="1:bb")
    response = boss.get(url("deadjob_groups"), query)
    assert response.context["found"].groups[0].type == first


def test_a_group_tells_how_many_since_when_for_whom_and_after_how_many_attempts(boss, group):
    html = page(boss, "deadjob_group", **GROUP)
    text = words(html)
    for told in ("Dead now 30", "First seen 3 h ago", "Last seen 1 min ago", "Traceback: in render, line 7"):
        assert told in text
    assert "Tenants acme 20 umbrella 10" in text
    assert "Attempts before death 3 20 1 10" in text
    assert 'role="img" aria-label="Deaths by hour: 30 in all, at most' in html
    assert html.count("/job/") >= 20
    assert str(group[-1].pk) in html


def test_a_group_that_this_release_brought_is_said_to_be_new(boss, group, settings):
    settings.DJANGO_JOBS = {**settings.DJANGO_JOBS, "RELEASE": "r41"}
    get_settings.cache_clear()
    fold_changes()
    assert "new in this release" in page(boss, "deadjob_group", **GROUP)
    assert "release r41" in page(boss, "deadjob_group", **GROUP)
    settings.DJANGO_JOBS = {**settings.DJANGO_JOBS, "RELEASE": "r42"}
    get_settings.cache_clear()
    for name, query in (("deadjob_group", GROUP), ("deadjob_groups", {})):
        assert "new in this release" not in page(boss, name, **query)


@pytest.mark.parametrize(("kind", "left_in"), [("retry", Job), ("discard", JobHistory)])
def test_all_jobs_of_a_group_and_no_others_are_retried_or_discarded_from_its_page(boss, group, kind, left_in):
    DeadJobFactory(type="send_invoice", fingerprint="1:bb")
    shown = boss.get(url("deadjob_group"), GROUP).context
    form = {"kind": kind, "filter": shown["filter_json"]}
    preview = boss.post(url("deadjob_preview"), form).context
    assert preview["count"] == 30
    boss.post(url("deadjob_start"), form | {"bulk_id": str(preview["bulk_id"])})
    while bulk_step(BulkOperation.objects.get().pk):
        pass
    assert left_in.objects.count() == 30
    assert DeadJob.objects.get().fingerprint == "1:bb"


def test_a_group_whose_jobs_are_gone_is_not_found(boss, group):
    DeadJob.objects.all().delete()
    assert boss.get(url("deadjob_group"), GROUP).status_code == 404
