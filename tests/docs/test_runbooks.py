"""Whoever is woken by an alert finds a page about it."""

from pathlib import Path

import pytest

from django_jobs.conf import CONDITIONS

DOCS = Path(__file__).parent.parent.parent / "docs"
RUNBOOKS = DOCS / "runbooks"
SECTIONS = ["## What it means", "## What to look at", "## What to do"]


def page_of(condition):
    return RUNBOOKS / f"{condition.replace('_', '-')}.md"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_alert_has_a_runbook_with_what_it_means_what_to_look_at_and_what_to_do(condition):
    text = page_of(condition).read_text(encoding="utf-8")
    assert f"Condition `{condition}`." in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS


def test_there_is_no_runbook_of_an_alert_that_is_gone():
    assert {path.name for path in RUNBOOKS.glob("*.md")} == {page_of(name).name for name in CONDITIONS} | {"index.md"}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_guide_leads_to_every_runbook(condition):
    guide = (DOCS / "guides" / "silence-and-alerts.md").read_text(encoding="utf-8")
    assert f"[`{condition}`](../runbooks/{page_of(condition).name})" in guide
