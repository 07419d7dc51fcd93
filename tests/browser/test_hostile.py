"""Hostile text in every stored field, on every page: it is shown as text, and nothing else happens."""

import pytest
from django.db import models as fields

from django_jobs import models
from testproject.shop.lifelike import Day
from tests.factories import DeadJobFactory

from .pages import every_page, start_an_operation, url

ATTACKS = {
    "script": "</script><script>alert(1)</script>",
    "attribute": "\"><img src=x onerror=alert(1)>' onmouseover='alert(1)",
    "template": "{{ 7|add:'7' }}{% load x %}${alert(1)}",
    "formula": '=HYPERLINK("https://evil.example","x")',
    "right to left": "\u202egnp.exe\u202c \u200b\ufeff",
    "long": "W" * 8192,
}
TABLES = [
    models.Job, models.DeadJob, models.JobHistory, models.Worker, models.AuditEntry, models.Alert, models.DeadGroup,
    models.BulkOperation, models.Schedule,
]  # fmt: skip
# Words that the code compares with, and that it alone writes.
OURS = {"status", "state", "reason", "kind", "severity", "outcome", "target_kind", "catch_up", "overlap", "enabled_by"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_stored_text_does_anything(visit, boss, transactional_db, attack):
    Day(share=0.1).run()
    start_an_operation()
    models.Alert.objects.exclude(pk=models.Alert.objects.first().pk).delete()
    for table in TABLES:
        poison(table, ATTACKS[attack])
    visitor = visit(boss)
    for name, path in (*every_page(), *pages_named_by(ATTACKS[attack])):
        page = visitor.open(path)
        assert page.locator("img[src=x]").count() == 0, name
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280, name
        if attack == "script":
            assert "<script>alert(1)" not in page.content(), name
    assert visitor.faults == []


@pytest.mark.parametrize("attack", ["script", "attribute"])
def test_no_address_does_anything(visit, boss, transactional_db, attack):
    Day(share=0.1).run()
    visitor = visit(boss)
    names = ("q", "queue", "type", "tenant", "error", "fingerprint", "before", "actor", "name", "age", "status")
    for page_name in ("job", "deadjob", "jobhistory", "auditentry", "schedule", "alert"):
        page = visitor.open(url(f"{page_name}_changelist", **dict.fromkeys(names, ATTACKS[attack])))
        assert page.locator("img[src=x]").count() == 0


def pages_named_by(text):
    """Of a schedule and a group whose names are this text."""
    name = text[:200]
    models.Schedule.objects.filter(pk=models.Schedule.objects.last().pk).update(name=name)
    yield "hostile schedule", url("schedule_one", name=name)
    yield "hostile schedule form", url("schedule_form", name=name)
    dead = DeadJobFactory(type=name, fingerprint=text[:40], queue=name, tenant=name, error_type=name)
    yield "hostile group", url("deadjob_group", type=name, fingerprint=dead.fingerprint)
    yield "hostile dead job", url("job_change", dead.pk)
    yield "groups with a hostile one", url("deadjob_groups", order="last_seen")


def poison(table, text):
    """Every text of every row, as long as the column is; JSON in keys and values."""
    rows = table.objects.all()
    changes = {}
    for field in table._meta.concrete_fields:
        if field.primary_key or field.name in OURS:
            continue
        if isinstance(field, fields.JSONField):
            changes[field.name] = poisoned_json(field.name, text)
        elif isinstance(field, fields.CharField | fields.TextField):
            changes[field.name] = text[: field.max_length or 8192]
    changes.pop("filter", None)
    changes.pop("canary_ids", None)
    if table is models.DeadGroup or table is models.DeadJob:
        changes.pop("type")
        changes.pop("fingerprint")
    rows.update(**changes)


def poisoned_json(name, text):
    error = {"attempt": 1, "at": text, "type": text, "message": text, "traceback": text, "worker": text}
    match name:
        case "errors":
            return [error]
        case "queues":
            return [{"queues": [text], "slots": text}]
        case "progress":
            return {"fraction": 0.5, "message": text}
    return {text: text, "list": [text, {text: text}]}
