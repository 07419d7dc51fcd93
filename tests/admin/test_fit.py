"""Where the pages fit in: other sites and prefixes, a replica for reading, languages, zones, numbers."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.test import override_settings
from django.urls import path, reverse
from django.utils import timezone

from django_jobs import admin as jobs_admin
from django_jobs.models import Job, JobHistory
from tests.factories import DeadJobFactory, JobCountFactory, JobFactory, JobHistoryFactory

from .support import LISTS, page, url

pytestmark = pytest.mark.django_db


class OperationsSite(AdminSite):
    site_header = "Operations"


operations = OperationsSite(name="operations")
jobs_admin.register(operations)
urlpatterns = [path("admin/", admin.site.urls), path("back/office/", operations.urls)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_site_of_ones_own_under_another_prefix_has_all_pages_and_stays_there(boss):
    dead = DeadJobFactory()
    for name in LISTS:
        text = boss.get(reverse(f"admin:django_jobs_{name}_changelist", current_app="operations")).content.decode()
        assert "Operations" in text
        assert "/back/office/django_jobs/" in text
        assert 'href="/admin/' not in text
    target = f"/back/office/django_jobs/job/{dead.pk}/"
    assert 'action="/back/office/' in boss.get(target).content.decode()
    assert boss.post(f"{target}retry/")["Location"] == target


def test_a_subclass_adds_a_page_and_takes_one_away(boss):
    class Mine(jobs_admin.JobAdmin):
        def pages(self):
            return [self.page("mine/", self.mine, "mine"), *super().pages()]

        def mine(self, request):
            return self.show(request, "queues", "Mine", queues=[])

    site = AdminSite(name="mine")
    site.register(Job, Mine)
    patterns = [path("admin/", admin.site.urls), path("mine/", site.urls)]
    module = type("Urls", (), {"urlpatterns": patterns})
    with override_settings(ROOT_URLCONF=module):
        text = boss.get("/mine/django_jobs/job/mine/").content.decode()
        assert "Mine" in text
        assert "/deadjob/" not in text
        assert boss.get("/mine/django_jobs/job/overview/").status_code == 200


class Replica:
    """Reads of our tables go to another alias; writes do not."""

    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "django_jobs" else None

    def allow_relation(self, *args, **hints):
        return True


@pytest.mark.django_db(databases=["default", "other"])
def test_lists_are_read_where_the_router_says_and_actions_go_to_the_jobs_database(boss):
    here = JobFactory(scheduled=True, type="written")
    with override_settings(DATABASE_ROUTERS=["tests.admin.test_fit.Replica"]):
        Job(type="replicated", queue="default", payload={}, max_attempts=1).save(using="other", force_insert=True)
        JobCountFactory._meta.model.objects.using("other").all()
        text = page(boss, "job_changelist")
        assert "replicated" in text
        assert "written" not in text
        assert "written" in page(boss, "job_change", here.pk)
        boss.post(url("job_cancel", here.pk))
        for name in ("job_overview", "queue_changelist", "deadjob_groups", "worker_changelist"):
            page(boss, name)
    assert JobHistory.objects.using("default").get().job_id == here.pk
    assert not JobHistory.objects.using("other").exists()


def test_charts_have_points_in_every_language(boss):
    """A comma in a coordinate would break the picture."""
    JobCountFactory(count=7)
    JobCountFactory(count=2, outcome="dead")
    text = boss.get(url("job_overview"), headers={"accept-language": "de"}).content.decode()
    drawing = text[text.index("<svg viewBox") :]
    assert 'height="84"' in drawing
    assert not [part for part in drawing.split('"') if part.replace(",", "").isdigit() and "," in part]


def test_times_are_those_of_the_zone_that_the_project_activates(boss):
    at = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    JobHistoryFactory(finished_at=at, status="succeeded")
    boss.cookies["django_jobs_zone"] = "Asia/Tokyo"
    with timezone.override("Europe/Berlin"):
        text = page(boss, "jobhistory_changelist")
    assert "14:00:00" in text
    assert "Times are those of Europe/Berlin." in text


def test_else_times_are_those_of_the_browser(boss):
    JobHistoryFactory(finished_at=datetime(2026, 7, 1, 12, 0, tzinfo=UTC))
    boss.cookies["django_jobs_zone"] = "Asia/Tokyo"
    text = page(boss, "jobhistory_changelist")
    assert "21:00:00" in text
    assert "Times are those of Asia/Tokyo." in text


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "x" * 500, "Europe", "\udc80"])
def test_a_zone_that_is_none_is_passed_over(boss, zone):
    boss.cookies["django_jobs_zone"] = zone.encode("utf-8", "replace").decode()
    assert "Times are those of" in page(boss, "jobhistory_changelist")


def test_a_pause_ends_in_the_viewers_zone(boss):
    boss.cookies["django_jobs_zone"] = "Asia/Tokyo"
    until = timezone.now().astimezone(ZoneInfo("Asia/Tokyo")) + timedelta(hours=1)
    boss.post(url("queue_pause"), {"queue": "default", "until": f"{until:%Y-%m-%dT%H:%M}"})
    text = page(boss, "queue_changelist")
    assert f"{until:%H:%M}:00" in text
