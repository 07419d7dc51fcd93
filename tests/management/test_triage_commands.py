"""Triage in a shell: what the commands do, say, refuse, and write as JSON."""

import json
from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_jobs import explain, get_bulk, get_job
from django_jobs.ids import uuid7
from django_jobs.management import bulk_command
from django_jobs.models import AuditEntry, BulkOperation, Job, JobHistory, Queue
from tests.operations.handlers import note
from tests.operations.support import committing
from tests.operations.triage import ago, die, fold, no_changes, whereabouts

pytestmark = [committing, pytest.mark.usefixtures("no_changes")]
__all__ = ["no_changes"]


def run(*words):
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def run_json(*words):
    return json.loads(run(*words, "--format", "json"))


def test_a_dry_run_says_what_would_happen_and_changes_nothing():
    die(3, type="send_invoice")
    die(2, type="other")
    text = run("retrydead", "--type", "send_invoice", "--spread", "10", "--canary", "2", "--dry-run")
    assert text == (
        "Dry run: 3 jobs will be retried, 2 first and the rest when confirmed, spread over 0:10:00: "
        "type send_invoice.\n"
    )
    assert run_json("discarddead", "--all", "--dry-run")["count"] == 5
    assert whereabouts() == {"DeadJob": 5, "Job": 0, "JobHistory": 0}
    assert not BulkOperation.objects.exists()


def test_dead_jobs_are_retried_by_filter_and_by_id():
    jobs = die(3, type="a") + die(2, type="b")
    assert run("retrydead", "--type", "a").startswith("retried 3, skipped 0 (changed). Operation ")
    assert run_json("retrydead", str(jobs[3].id))["done"] == 1
    assert whereabouts() == {"DeadJob": 1, "Job": 4, "JobHistory": 0}


def test_dead_jobs_are_discarded():
    die(4, error_summary="no such contact")
    die(1, error_summary="other")
    assert run("discarddead", "--error", "NO SUCH").startswith("discarded 4, skipped 0")
    assert JobHistory.objects.filter(status="discarded").count() == 4


def test_instants_without_an_offset_are_in_the_projects_zone(settings):
    settings.TIME_ZONE = "Asia/Kolkata"
    timezone.get_default_timezone.cache_clear()
    die(failed_at=ago(hours=2))
    die(failed_at=ago(hours=4))
    since = timezone.localtime(ago(hours=3)).replace(tzinfo=None)
    assert run_json("retrydead", "--since", since.isoformat(), "--dry-run")["count"] == 1
    assert run_json("retrydead", "--until", f"{ago(hours=3).isoformat()}", "--dry-run")["count"] == 1
    timezone.get_default_timezone.cache_clear()


def test_a_canary_goes_first_and_is_confirmed_or_aborted():
    die(10)
    text = run("retrydead", "--all", "--canary", "2")
    operation = BulkOperation.objects.get()
    assert f"--confirm {operation.id}" in text
    assert whereabouts()["Job"] == 2
    assert run("retrydead", "--confirm", str(operation.id)).startswith("retried 10")
    assert "was not aborted: it is done" in run("retrydead", "--abort", str(operation.id))


def test_without_waiting_the_work_is_left_to_maintenance():
    die(3)
    answer = run_json("retrydead", "--all", "--no-wait")
    assert (answer["state"], answer["done"], whereabouts()["Job"]) == ("running", 0, 0)
    assert run("retrydead", "--abort", answer["id"]) == f"{answer['id']} is aborted.\n"
    assert get_bulk(UUID(answer["id"])).state == "aborted"


def test_a_spread_is_followed_to_its_end(monkeypatch):
    monkeypatch.setattr(bulk_command, "LOOK_EVERY", 0.01)
    die(5)
    assert run_json("retrydead", "--all", "--spread", "0.03")["done"] == 5


def test_progress_is_shown_to_people_only(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    die(5)
    terminal = Terminal()
    call_command("retrydead", "--all", stdout=StringIO(), stderr=terminal)
    assert "5 of 5" in terminal.getvalue()
    die(5)
    terminal = Terminal()
    call_command("retrydead", "--all", "--format", "json", stdout=StringIO(), stderr=terminal)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["retrydead"], "Which dead jobs"),
        (["discarddead"], "Which dead jobs"),
        (["retrydead", "--all", "--type", "a"], "--all"),
        (["retrydead", "--type", "a", "--reason", "exausted"], "Did you mean 'exhausted'"),
        (["retrydead", "--since", "yesterday"], "no instant"),
        (["retrydead", "--since", "2026-13-01"], "no instant"),
        (["retrydead", "--all", "--spread", "-1"], "spread"),
        (["retrydead", "--all", "--spread", "nan"], "spread"),
        (["retrydead", "--all", "--canary", "1000"], "canary"),
        (["retrydead", "x"], "no job id"),
        (["retrydead", "--confirm", str(uuid7())], "no bulk operation"),
        (["explainjob", str(uuid7())], "No job has the id"),
        (["canceljob", "x"], "no job id"),
        (["pausequeue", "defualt"], "Did you mean 'default'"),
        (["pausequeue", "default", "--minutes", "0"], "--minutes"),
        (["resumequeue", "defualt"], "Did you mean 'default'"),
        (["deadgroups", "--limit", "0"], "limit"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_cannot_be_meant_is_refused_and_nothing_changed(words, named):
    die(2)
    with pytest.raises(CommandError, match=named):
        run(*words)
    assert whereabouts() == {"DeadJob": 2, "Job": 0, "JobHistory": 0}


def test_groups_are_listed():
    assert run("deadgroups") == "No job is dead.\n"
    die(3, type="a", failed_at=ago(hours=1))
    die(1, type="b", error_type="KeyError", error_summary="'x'")
    fold()
    text = run("deadgroups")
    assert text.index("        3  a  1:0123456789abcdef") < text.index("        1  b")
    assert "KeyError: 'x'" in text
    assert run("deadgroups", "--limit", "1").endswith("…\n")
    (group,) = run_json("deadgroups", "--error", "keyerror")
    assert (group["type"], group["count"], sum(group["per_hour"])) == ("b", 1, 1)


def test_a_job_is_explained():
    job = note.using(delay=timedelta(hours=1)).enqueue()
    assert "It is scheduled for" in run("explainjob", str(job.id))
    assert [reason["code"] for reason in run_json("explainjob", str(job.id))] == [r.code for r in explain(job.id)]


def test_a_job_is_cancelled():
    job = note.enqueue()
    assert run("canceljob", str(job.id)) == "It is cancelled.\n"
    assert get_job(job.id).status == "cancelled"
    assert run_json("canceljob", str(job.id)) == {"id": str(job.id), "cancellation": "cancelled"}


def test_a_queue_is_paused_and_resumed():
    assert run("pausequeue", "default") == "Queue default is paused until somebody resumes it.\n"
    assert run_json("pausequeue", "default", "--minutes", "30")["paused"] is True
    left = Queue.objects.get().resume_at - timezone.now()
    assert timedelta(minutes=29) < left < timedelta(minutes=31)
    assert run("resumequeue", "default") == "Queue default is running.\n"
    assert Queue.objects.get().paused_at is None


def test_who_ran_a_command_is_in_the_audit():
    die()
    run("retrydead", "--all")
    run("pausequeue", "default")
    assert {entry.source for entry in AuditEntry.objects.all()} == {"command"}
    assert all(entry.actor for entry in AuditEntry.objects.all())
    assert Job.objects.count() == 1


def test_stored_text_cannot_steer_a_terminal():
    die(1, error_type="Bad\x1b[2J", error_summary="red \x1b]0;owned\x07 \u202egnp.exe\r")
    text = run("deadgroups")
    assert "red \\x1b]0;owned\\x07 \\u202egnp.exe\\r" in text
    assert not set(text) & set("\x1b\x07\u202e\r")
