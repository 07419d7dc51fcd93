"""Lists: keyset pages, capped counts, filters and the search box."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobs.admin import listing
from django_jobs.ids import uuid7_at
from tests.factories import DeadJobFactory, IdempotencyKeyFactory, JobFactory, JobHistoryFactory

from .support import page, url

pytestmark = pytest.mark.django_db


def rows_of(response):
    return [row.pk for row in response.context["rows"].rows]


def walk(client, name, **query):
    """The keys of all pages, one list for each."""
    pages = []
    before = ""
    while True:
        response = client.get(url(name), {**query, "before": before} if before else query)
        pages.append(rows_of(response))
        before = response.context["rows"].older
        if not before:
            return pages


@pytest.mark.parametrize(
    ("name", "factory"),
    [
        ("job_changelist", JobFactory),
        ("deadjob_changelist", DeadJobFactory),
        ("jobhistory_changelist", JobHistoryFactory),
    ],
)
def test_pages_hold_every_row_once_the_newest_first(boss, name, factory):
    made = [row.pk for row in factory.create_batch(120)]
    pages = walk(boss, name)
    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert [pk for rows in pages for pk in rows] == made[::-1]


@pytest.mark.parametrize(
    ("name", "factory"), [("job_changelist", JobFactory), ("jobhistory_changelist", JobHistoryFactory)]
)
def test_a_state_of_a_later_release_is_shown_as_it_is(boss, name, factory):
    row = factory(status="zzz")
    assert walk(boss, name) == [[row.pk]]
    assert "zzz" in page(boss, name)


def test_dead_jobs_of_one_moment_are_all_shown(boss):
    moment = timezone.now()
    made = {row.pk for row in DeadJobFactory.create_batch(120, failed_at=moment)}
    pages = walk(boss, "deadjob_changelist")
    shown = [pk for rows in pages for pk in rows]
    assert len(shown) == 120
    assert set(shown) == made


@pytest.mark.parametrize("before", ["x", "~", "2026~x", "2026-01-01~1", "9" * 400, "2026-13-45T00:00:00~1"])
@pytest.mark.parametrize(
    "name", ["job_changelist", "deadjob_changelist", "jobhistory_changelist", "auditentry_changelist"]
)
def test_a_forged_cursor_starts_at_the_newest(boss, name, before):
    assert boss.get(url(name), {"before": before}).status_code == 200


def test_a_count_stops_at_its_cap(boss, monkeypatch):
    monkeypatch.setattr(listing, "COUNTED", 100)
    JobFactory.create_many(101)
    assert "100+ in all" in page(boss, "job_changelist")


def test_a_filter_looks_through_a_span_and_goes_on_from_there(boss, monkeypatch):
    monkeypatch.setattr(listing.Listing, "take", _with_span(40))
    needles = [JobFactory(tenant="needle").pk]
    JobFactory.create_many(90)
    response = boss.get(url("job_changelist"), {"tenant": "needle"})
    assert rows_of(response) == []
    assert "Nothing among the rows looked through" in response.content.decode()
    pages = walk(boss, "job_changelist", tenant="needle")
    assert [pk for rows in pages for pk in rows] == needles
    assert len(pages) == 3


def _with_span(span):
    original = listing.Listing.take

    def take(self, *args, **kwargs):
        return original(listing.Listing(newest_first=self.newest_first, page=self.page, span=span), *args, **kwargs)

    return take


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"status": "pending"}, "pending"),
        ({"status": "processing"}, "processing"),
        ({"status": "scheduled"}, "scheduled"),
        ({"status": "failed_retrying"}, "retrying"),
        ({"queue": "bulk"}, "bulk"),
        ({"type": "special"}, "special"),
        ({"tenant": "acme"}, "acme"),
        ({"q": "acme"}, "acme"),
        ({"q": "key-of-it"}, "keyed"),
    ],
)
def test_jobs_are_filtered(boss, query, wanted):
    made = {
        "pending": JobFactory(queue="urgent"),
        "processing": JobFactory(processing=True, queue="urgent"),
        "scheduled": JobFactory(scheduled=True, queue="urgent"),
        "retrying": JobFactory(scheduled=True, last_error="x", queue="urgent"),
        "bulk": JobFactory(queue="bulk"),
        "special": JobFactory(type="special"),
        "acme": JobFactory(tenant="acme"),
        "keyed": JobFactory(idempotency_key="key-of-it"),
    }
    IdempotencyKeyFactory(key="key-of-it", job_id=made["keyed"].pk)
    shown = rows_of(boss.get(url("job_changelist"), query))
    assert made[wanted].pk in shown
    if wanted in ("processing", "retrying", "bulk", "special", "acme", "keyed"):
        assert shown == [made[wanted].pk]


def test_an_id_in_the_search_box_leads_to_its_job(boss):
    job = JobFactory()
    for name in ("job_changelist", "deadjob_changelist"):
        response = boss.get(url(name), {"q": f" {job.pk} "})
        assert response["Location"] == url("job_change", job.pk)


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "%", "'\"", "x" * 5000, "١٢ 😀"])
@pytest.mark.parametrize(
    "name", ["job_changelist", "deadjob_changelist", "jobhistory_changelist", "deadjob_groups", "auditentry_changelist"]
)
def test_any_text_in_any_filter_is_answered(boss, name, text):
    DeadJobFactory()
    fields = [field.name for field in boss.get(url(name)).context["filters"].fields]
    assert boss.get(url(name), dict.fromkeys(fields, text)).status_code == 200
    assert boss.get(url(name), {"q": text, "page": text}).status_code == 200


def test_history_begins_with_the_last_day(boss):
    old = JobHistoryFactory(id=uuid7_at(timezone.now() - timedelta(hours=25)))
    new = JobHistoryFactory()
    assert rows_of(boss.get(url("jobhistory_changelist"))) == [new.pk]
    assert rows_of(boss.get(url("jobhistory_changelist"), {"age": "all"})) == [new.pk, old.pk]
    assert rows_of(boss.get(url("jobhistory_changelist"), {"q": str(old.job_id)})) == [old.pk]


@pytest.mark.parametrize(
    "query",
    [
        {"reason": "timeout"},
        {"error": "tIMED"},
        {"fingerprint": "1:ff"},
        {"type": "slow", "fingerprint": "1:ff"},
        {"age": "1h"},
    ],
)
def test_dead_jobs_are_filtered(boss, query):
    wanted = DeadJobFactory(reason="timeout", error_summary="it timed out", fingerprint="1:ff", type="slow")
    DeadJobFactory(failed_at=timezone.now() - timedelta(hours=2))
    assert rows_of(boss.get(url("deadjob_changelist"), query)) == [wanted.pk]


@pytest.mark.parametrize("number", ["9" * 5000, "²", "-1", "999999"])
def test_a_page_of_groups_that_is_none_is_answered(boss, number):
    DeadJobFactory()
    assert boss.get(url("deadjob_groups"), {"page": number}).status_code == 200
