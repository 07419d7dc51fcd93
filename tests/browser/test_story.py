"""20,000 dead jobs at 09:00, in small: they die, are understood, tried out, retried and seen to drain."""

import re

from playwright.sync_api import expect

from django_jobs.models import AuditEntry, DeadJob
from tests.app.jobs import fail_until
from tests.app.models import Mark
from tests.waiting import wait_for

from .pages import url

JOBS = 60


def test_jobs_die_and_are_brought_back_in_a_few_clicks(visit, boss, start_worker, gate):
    fail_until.enqueue_many({"number": number, "until": str(gate)} for number in range(JOBS))
    start_worker()
    wait_for(lambda: DeadJob.objects.count() == JOBS, timeout=60)
    visitor = visit(boss)
    page = visitor.open(url("job_overview"))

    page.get_by_role("navigation", name="Pages of the jobs").get_by_role("link", name="Dead groups").click()
    row = page.get_by_role("row").filter(has_text="fail_until")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(str(JOBS))
    row.get_by_role("link", name="ConnectionError").click()
    expect(page.get_by_text("Traceback (most recent call last)").first).to_be_visible()

    gate.touch()
    page.get_by_role("button", name="Retry group …").click()
    expect(page.get_by_text(f"{JOBS} dead jobs go back to their queues.")).to_be_visible()
    page.get_by_label(re.compile("Try so many first")).fill("5")
    page.get_by_role("button", name=f"Retry {JOBS} jobs").click()
    expect(page.get_by_role("heading", name=re.compile("Shall the rest follow"))).to_be_visible(timeout=60_000)
    wait_for(lambda: Mark.objects.count() == 5, timeout=60)

    page.get_by_role("button", name="Go on with the rest").click()
    expect(page.get_by_text(f"{JOBS} of {JOBS} done, 0 skipped")).to_be_visible(timeout=60_000)
    wait_for(lambda: Mark.objects.count() == JOBS, timeout=60)
    assert not DeadJob.objects.exists()
    assert sorted(Mark.objects.values_list("label", flat=True)) == sorted(f"printed {n}" for n in range(JOBS))

    page.get_by_role("link", name="Audit", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="asked for a bulk retry")).to_contain_text("boss")
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"boss"}
