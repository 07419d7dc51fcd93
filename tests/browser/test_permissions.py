"""Who may only look finds nothing to press, and who has one right finds that alone."""

import pytest

from testproject.shop.lifelike import Day

from .pages import LISTS, every_page, start_an_operation, url

VIEWS = [f"view_{name}" for name in LISTS]
HARMLESS = {"Pause refresh", "Resume refresh", "Filter"}


@pytest.fixture
def day(transactional_db):
    Day(share=0.1).run()
    start_an_operation()


def buttons(page):
    return {text.strip() for text in page.locator(".dj button").all_inner_texts()} - HARMLESS


def test_who_may_only_look_finds_nothing_to_press(visit, staff, day):
    visitor = visit(staff(*VIEWS))
    for name, path in every_page():
        if name != "schedule form":
            assert buttons(visitor.open(path)) == set(), name


def test_who_may_see_one_page_finds_no_way_to_others(visit, staff, day):
    page = visit(staff("view_deadjob")).open(url("deadjob_groups"))
    assert page.locator(".dj-tabs a").all_inner_texts() == ["Dead groups", "Dead jobs"]


def test_who_may_retry_finds_no_other_button(visit, staff, day):
    visitor = visit(staff(*VIEWS, "retry_deadjob"))
    found = {text for name, path in every_page() if name != "schedule form" for text in buttons(visitor.open(path))}
    retrying = {"Retry …", "Retry group …", "Retry"}
    assert retrying <= found <= retrying | {"Change payload and retry …", "Go on with the rest", "Abort"}
