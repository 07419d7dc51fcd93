"""Takes the pictures of the admin's pages into ``docs/images``: ``python docs/pictures.py``.

The testproject on a database of its own, filled with a day of lifelike rows, seen with the system's Chromium.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1180, "height": 760}
COLOURS = 96
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DATABASE_URL": f"sqlite:///{folder}/pictures.sqlite3",
            "VAR_DIR": folder,
            "DJANGO_SETTINGS_MODULE": "testproject.settings",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        }
        import django

        django.setup()
        fill()
        with_server(take_all)


def fill() -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from testproject.shop.lifelike import Day

    call_command("migrate", verbosity=0)
    Day().run()
    User.objects.create_superuser("ada")


def with_server(work) -> None:
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.test.testcases import LiveServerThread

    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    try:
        work(f"http://127.0.0.1:{server.port}")
    finally:
        server.terminate()


def take_all(site: str) -> None:
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        light, dark = (viewer(browser, site, scheme) for scheme in ("light", "dark"))
        for name, path in pages():
            light.goto(site + path)
            picture(light, name)
        dark.goto(site + url("job_overview"))
        picture(dark, "overview-dark")
        light.goto(site + url("deadjob_groups"))
        light.get_by_role("link", name="urllib.error.HTTPError").click()
        picture(light, "dead-group")
        light.get_by_role("button", name="Retry group …").click()
        picture(light, "bulk-preview")
        browser.close()


def viewer(browser, site: str, scheme: str):
    """A page of somebody who is logged in, without the admin's sidebar."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="ada"))
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, timezone_id="Europe/Berlin")
    session = client.cookies["sessionid"].value
    context.add_cookies(
        [{"name": name, "value": value, "url": site}
         for name, value in (("sessionid", session), ("django_jobs_zone", "Europe/Berlin"))]
    )  # fmt: skip
    context.add_init_script("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")
    return context.new_page()


def url(page: str, *args: object, **query: object) -> str:
    from django.urls import reverse

    return reverse(f"admin:django_jobs_{page}", args=args, query=query or None)


def pages() -> Iterator[tuple[str, str]]:
    from django_jobs.models import BulkOperation, DeadJob, Job

    yield "overview", url("job_overview")
    yield "dead-groups", url("deadjob_groups")
    for name in ("deadjob", "job", "jobhistory", "schedule", "queue", "worker", "alert", "bulkoperation", "auditentry"):
        yield name, url(f"{name}_changelist")
    yield "job-dead", url("job_change", DeadJob.objects.filter(reason="timeout").latest("failed_at").pk)
    yield "job-running", url("job_change", Job.objects.exclude(progress=None).get().pk)
    yield "bulk-operation", url("bulkoperation_change", BulkOperation.objects.get(state="canary").pk)
    yield "schedule-form", url("schedule_form", name="stock reports")


def picture(page, name: str) -> None:
    """As a PNG of few colours."""
    from PIL import Image

    file = IMAGES / f"{name}.png"
    page.screenshot(path=file)
    with Image.open(file) as taken:
        taken.convert("RGB").quantize(COLOURS).save(file, optimize=True)


if __name__ == "__main__":
    main()
