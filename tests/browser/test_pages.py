"""Every page under the strictest policy: in the light and in the dark, narrow and wide, by keyboard and by ear."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from testproject.shop.lifelike import Day

from .pages import every_page, start_an_operation, url

WIDTHS = (360, 768, 1280, 2560)
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}


@pytest.fixture
def day(transactional_db):
    """Lifelike rows in every table."""
    made = Day(share=0.1)
    made.run()
    start_an_operation()
    return made


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


def test_no_page_has_a_fault_that_axe_finds(visit, boss, day, scheme):
    visitor = visit(boss, color_scheme=scheme)
    found = {}
    for name, path in every_page():
        page = visitor.open(path)
        result = Axe().run(page, context=".dj", options=RULES)
        if faults := result.response["violations"]:
            found[name] = [(fault["id"], [node["html"][:200] for node in fault["nodes"][:3]]) for fault in faults]
    assert found == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_window(visit, boss, day, width):
    visitor = visit(boss, viewport={"width": width, "height": 800})
    wide = {}
    for name, path in every_page():
        page = visitor.open(path)
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[name] = needed
    assert wide == {}


def test_dark_mode_has_dark_pages(visit, boss, day, scheme):
    visitor = visit(boss, color_scheme=scheme)
    for _, path in every_page():
        page = visitor.open(path)
        channel = page.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
        text = page.evaluate("parseInt(getComputedStyle(document.querySelector('.dj')).color.match(/\\d+/)[0])")
        assert (channel < 60, text > 180) == ((True, True) if scheme == "dark" else (False, False))


def test_everything_is_reached_by_keyboard(visit, boss, day):
    """Tab goes through every control and scrollable region, and shows where it is."""
    page = visit(boss).open(url("deadjob_changelist"))
    wanted = page.evaluate(
        "document.querySelectorAll('.dj :is(a[href], button, input:not([type=hidden]), select)').length"
    )
    page.locator(".dj-tabs a").first.focus()
    seen = set()
    for _ in range(wanted + 10):
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        inside = page.evaluate("!!document.activeElement.closest('.dj')")
        if inside:
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")
            seen.add(page.evaluate("document.activeElement.outerHTML"))
        page.keyboard.press("Tab")
    assert len(seen) > wanted * 0.6


def test_a_group_is_retried_with_the_keyboard_alone(visit, boss, day):
    page = visit(boss).open(url("deadjob_groups"))
    page.get_by_role("link", name="smtplib.SMTPRecipientsRefused").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Retry group …").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("Retry [0-9]+ jobs")).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/bulkoperation/**")


def test_pages_work_without_script(visit, boss, day):
    visitor = visit(boss, java_script_enabled=False)
    page = visitor.open(url("schedule_form"))
    page.get_by_label("Cron expression").fill("0 8 * * 1-5")
    page.get_by_role("button", name="Check without saving").click()
    assert page.get_by_text("on Monday to Friday at 08:00").is_visible()
    page = visitor.open(url("queue_changelist"))
    page.get_by_text("Pause …").first.click()
    page.get_by_role("button", name="Pause", exact=True).first.click()
    assert page.get_by_text("is paused. What runs goes on.").is_visible()


def test_a_cron_expression_is_explained_while_it_is_written(visit, boss, day):
    page = visit(boss).open(url("schedule_form"))
    page.get_by_label("Cron expression").press_sequentially("*/20 * * * *")
    page.get_by_text("every 20 minutes").wait_for()
    assert page.get_by_role("list", name="Next slots").get_by_role("listitem").count() == 5
    page.get_by_label("Cron expression").press_sequentially(" x y")
    page.locator("#dj-preview .dj-bad").wait_for()


def test_times_are_those_of_the_browser(visit, boss, day):
    visitor = visit(boss, timezone_id="Asia/Tokyo")
    visitor.open(url("job_overview"))
    page = visitor.open(url("jobhistory_changelist"))
    assert page.get_by_text("Times are those of Asia/Tokyo.").is_visible()
    assert page.locator(".dj-table time").first.get_attribute("datetime").endswith("+09:00")


def test_the_page_refreshes_itself_until_it_is_paused(visit, boss, day):
    visitor = visit(boss)
    page = visitor.open(url("deadjob_groups"))
    with page.expect_response(lambda response: "groups" in response.url, timeout=30_000):
        pass
    page.get_by_role("button", name="Pause refresh").click()
    assert page.get_by_role("button", name="Resume refresh").is_visible()
    assert page.locator("[data-dj-live]").get_attribute("data-dj-state") == "off"
    page.reload()
    assert page.get_by_role("button", name="Resume refresh").is_visible()
