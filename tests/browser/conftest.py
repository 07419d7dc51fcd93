"""A real Chromium: the system's, driven by Playwright.

Without one the tests are skipped, and say so; where ``BROWSER_TESTS=required`` they fail instead.
"""

import os
import shutil

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.process.conftest import committed_data, gate, start_worker  # noqa: F401

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def chromium():
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def missing():
    """What is missing for these tests, or None."""
    if chromium() is None:
        return f"no Chromium: none of {', '.join(CHROMIUM)} is on PATH, and CHROMIUM names none"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return None


@pytest.fixture(scope="package")
def browser():
    if lack := missing():
        if os.environ.get("BROWSER_TESTS") == "required":
            pytest.fail(f"BROWSER_TESTS=required, but {lack}", pytrace=False)
        pytest.skip(f"NO BROWSER TEST IS RUN: {lack}")
    from playwright.sync_api import sync_playwright

    # Playwright's loop runs in this thread, where Django would refuse to touch the database; it ends with this folder.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield opened
        opened.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Visitor:
    """A person at a browser. ``faults`` holds what no page may do: violations of the policy, errors, dialogs."""

    def __init__(self, browser, site, **options):
        self.faults = []
        self.site = site
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        self.page.on("dialog", self._dialog)

    def _hear(self, message):
        if message.type in ("error", "warning") and "favicon" not in (message.location or {}).get("url", ""):
            self.faults.append(f"{message.text} ({self.page.url})")

    def _dialog(self, dialog):
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def log_in(self, user):
        client = Client()
        client.force_login(user)
        session = client.cookies["sessionid"]
        self.context.add_cookies([{"name": "sessionid", "value": session.value, "url": self.site}])
        return self

    def open(self, path):
        response = self.page.goto(self.site + path)
        assert response.status == 200, (path, response.status)
        return self.page

    def close(self):
        self.context.close()


@pytest.fixture
def visit(browser, live_server):
    """Makes visitors, logged in as the user that is given; checks in the end that no page misbehaved."""
    visitors = []

    def visit(user, **options):
        visitors.append(Visitor(browser, live_server.url, **options).log_in(user))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []


@pytest.fixture
def boss(transactional_db):
    return User.objects.create_superuser("boss", password="pass")


@pytest.fixture
def staff(transactional_db):
    def make(*codenames):
        user = User.objects.create_user("olga", password="pass", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return user

    return make
