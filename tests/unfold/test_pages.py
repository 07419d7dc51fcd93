"""Each page inside of unfold's frame: rendered whole, nothing of ours inline, no wider than the window, and at work."""

from html.parser import HTMLParser

import pytest
from django.contrib import admin

from django_jobs.models import BulkOperation, DeadJob, Job
from django_jobs.operations.bulk_step import bulk_step
from tests.browser.conftest import Visitor
from tests.browser.pages import url

OURS = ("dj", "dj-head", "dj-tabs", "dj-foot")


class Page(HTMLParser):
    """``classes``: of the elements in our part of the page. ``inline``: what is inline there. ``files``: its own."""

    def __init__(self, text):
        super().__init__()
        self.depth, self.classes, self.inline, self.files = 0, set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        names = (values.get("class") or "").split()
        self.files += [
            file for file in (values.get("src"), values.get("href")) if file and "static/django_jobs" in file
        ]
        if self.depth or "dj" in names:
            self.depth += tag == "div"
            self.classes.update(names)
            if tag in ("script", "style") or any(name == "style" or name.startswith("on") for name in values):
                self.inline.append(self.get_starttag_text())

    def handle_endtag(self, tag):
        self.depth -= bool(self.depth) and tag == "div"


@pytest.fixture
def client(client, boss):
    client.force_login(boss)
    return client


def test_the_site_is_unfolds():
    assert type(admin.site).__module__.startswith("unfold")


def test_each_page_is_whole_inside_of_unfolds_frame_with_nothing_inline(client, pages):
    for name, path in pages.items():
        response = client.get(path)
        assert response.status_code == 200, name
        text = response.content.decode()
        page = Page(text)
        assert "unfold/css" in text, name
        assert page.classes.issuperset(OURS), name
        assert page.depth == 0, name
        assert {file.rpartition("/")[2] for file in page.files} == {"admin.css", "admin.js"}, name
        assert page.inline == [], name


def test_the_models_are_in_unfolds_index(client, db):
    text = client.get("/admin/").content.decode()
    assert url("deadjob_changelist") in text
    assert url("auditentry_changelist") in text


def test_a_group_is_retried_after_its_preview(client, pages):
    response = client.get(pages["group"])
    wanted = response.context["group"]
    preview = client.post(url("deadjob_preview"), {"kind": "retry", "filter": response.context["filter_json"]})
    assert preview.context["count"] == wanted.count
    form = {name: preview.context[name] for name in ("filter_json", "bulk_id")}
    started = client.post(
        url("deadjob_start"), {"kind": "retry", "filter": form["filter_json"], "bulk_id": form["bulk_id"]}
    )
    operation = BulkOperation.objects.get(pk=form["bulk_id"])
    assert started["Location"] == url("bulkoperation_change", operation.pk)
    before = Job.objects.count()
    while bulk_step(operation.pk):
        pass
    assert Job.objects.count() == before + wanted.count
    assert not DeadJob.objects.filter(type=wanted.type, fingerprint=wanted.fingerprint).exists()
    assert f"{wanted.count} of {wanted.count} done" in client.get(started["Location"]).content.decode()


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_window(browser, live_server, boss, pages, width):
    visitor = Visitor(browser, live_server.url, viewport={"width": width, "height": 800}).log_in(boss)
    wide = {}
    for name, path in pages.items():
        page = visitor.open(path)
        assert page.locator(".dj-tabs a").first.is_visible(), name
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[name] = needed
    visitor.close()
    assert wide == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_unfolds_dark_mode(browser, live_server, boss, pages, scheme):
    visitor = Visitor(browser, live_server.url, color_scheme=scheme).log_in(boss)
    page = visitor.open(pages["groups"])
    text = page.evaluate("parseInt(getComputedStyle(document.querySelector('.dj')).color.match(/\\d+/)[0])")
    card = visitor.open(pages["dead job"]).evaluate(
        "parseInt(getComputedStyle(document.querySelector('.dj-card')).backgroundColor.match(/\\d+/)[0])"
    )
    visitor.close()
    assert (text > 150, card < 80) == ((True, True) if scheme == "dark" else (False, False))
