"""``jobhealth``: what it tells, and when it fails."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone

from django_jobs import pause
from django_jobs.maintenance.reporter import Reporter
from django_jobs.management.commands import jobhealth
from django_jobs.models import Leadership
from django_jobs.worker.probes import serving_probes
from django_jobs.worker.vitals import Vitals
from tests.factories import JobFactory, WorkerFactory

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def leader():
    return Leadership.objects.create(name="maintenance", holder="w-1", token=1, expires_at=timezone.now() + MINUTE)


def ask(*arguments):
    """The report and the exit code."""
    out = StringIO()
    code = 0
    try:
        call_command("jobhealth", *arguments, "--format", "json", stdout=out)
    except SystemExit as end:
        code = end.code
    return json.loads(out.getvalue()), code


def queue(report, name="default"):
    (found,) = [one for one in report["queues"] if one["queue"] == name]
    return found


def test_an_idle_site_is_well(leader):
    WorkerFactory(last_seen_at=timezone.now())
    report, code = ask()
    assert (code, report["well"], report["faults"], report["database"]) == (0, True, [], True)
    assert (report["workers"], report["leader"], report["lost_leases"]) == (1, "w-1", 0)
    assert [one["queue"] for one in report["queues"]] == ["default", "urgent", "bulk"]
    assert queue(report) == {"queue": "default", "waiting": 0, "oldest": None, "paused": False}


def test_the_age_of_the_oldest_job_that_could_start_is_told_for_each_queue():
    JobFactory(run_at=timezone.now() - 5 * MINUTE)
    JobFactory(due=True)
    JobFactory(scheduled=True)
    JobFactory(processing=True, run_at=timezone.now() - 60 * MINUTE)
    report, _ = ask()
    assert queue(report)["waiting"] == 2
    assert 300 <= queue(report)["oldest"] < 360
    assert queue(report, "urgent")["oldest"] is None


def test_jobs_of_a_queue_that_is_not_declared_are_told_too():
    JobFactory(queue="forgotten")
    assert queue(ask()[0], "forgotten")["waiting"] == 1


def test_lost_leases_and_silent_workers_are_told_apart_from_live_ones(leader):
    JobFactory(lapsed=True)
    JobFactory(processing=True)
    WorkerFactory(last_seen_at=timezone.now() - MINUTE)
    WorkerFactory(last_seen_at=timezone.now(), stopped_at=timezone.now())
    report, code = ask()
    assert (report["lost_leases"], report["workers"], code) == (1, 0, 0)


def test_a_worker_that_has_nothing_new_to_tell_is_a_live_one():
    WorkerFactory(last_seen_at=timezone.now() - Reporter.rest - Reporter.pause)
    assert ask()[0]["workers"] == 1


def test_a_job_that_has_waited_for_too_long_is_a_failure(leader):
    JobFactory(run_at=timezone.now() - 5 * MINUTE)
    assert ask("--max-age", "600")[1] == 0
    report, code = ask("--max-age", "60")
    assert code == 1
    assert "A job of queue 'default' has waited for 30" in report["faults"][0]


def test_a_paused_queue_may_wait(leader):
    JobFactory(run_at=timezone.now() - 5 * MINUTE)
    pause("default")
    report, code = ask("--max-age", "60")
    assert (queue(report)["paused"], code) == (True, 0)


def test_too_many_lost_leases_are_a_failure(leader):
    JobFactory.create_batch(2, lapsed=True)
    assert ask("--max-lost", "2")[1] == 0
    report, code = ask("--max-lost", "1")
    assert (code, report["faults"]) == (1, ["2 leases are lost and not rescued yet."])


def test_that_nobody_leads_the_maintenance_is_a_failure(leader):
    Leadership.objects.update(expires_at=timezone.now() - MINUTE / 2)
    assert ask()[1] == 0, "a leader that was killed has a minute to be followed"
    Leadership.objects.update(expires_at=timezone.now() - 2 * MINUTE)
    report, code = ask()
    assert (code, report["well"], report["leader"]) == (1, False, None)
    assert "Nobody leads the maintenance" in report["faults"][0]
    assert "runjobscheduler" in report["faults"][0]


def test_the_text_names_the_leader_that_is_missing():
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("jobhealth", stdout=out)
    assert end.value.code == 1
    assert "leader     nobody\n" in out.getvalue()
    assert "FAULT      Nobody leads" in out.getvalue()


def test_a_database_that_does_not_answer_is_a_failure(monkeypatch):
    def refuse():
        raise DatabaseError("the server is gone\n")

    monkeypatch.setattr(jobhealth, "health", refuse)
    report, code = ask()
    assert (code, report["database"]) == (1, False)
    assert report["faults"] == ["The jobs database does not answer: the server is gone"]


@pytest.fixture
def process():
    """``with process(live=True, ready=False) as port:`` as a worker would answer."""

    def process(**state):
        return serving_probes("127.0.0.1", 0, lambda: Vitals(worker="w-1", running=3, **state))

    return process


@pytest.mark.parametrize(
    ("live", "ready", "arguments", "code", "words"),
    [
        (True, True, [], 0, []),
        (True, False, [], 1, ["does not reach the jobs database"]),
        (True, False, ["--live"], 0, []),
        (False, False, [], 1, ["stands still"]),
        (False, False, ["--live"], 1, ["stands still"]),
    ],
)
def test_a_process_tells_about_itself(leader, process, live, ready, arguments, code, words):
    with process(live=live, ready=ready) as port:
        report, actual = ask("--port", str(port), *arguments)
    assert (actual, report["process"]["running"]) == (code, 3)
    assert all(word in str(report["faults"]) for word in words)
    assert ("database" in report) == (not arguments)


def test_a_process_that_does_not_answer_is_a_failure(process):
    with process(live=True, ready=True) as port:
        pass
    report, code = ask("--port", str(port), "--live")
    assert (code, report["process"]) == (1, None)
    assert f"127.0.0.1:{port} does not answer" in report["faults"][0]


def test_live_without_a_port_is_refused():
    with pytest.raises(SystemExit):
        call_command("jobhealth", "--live", stderr=StringIO())


def test_the_text_says_the_same(leader, process):
    JobFactory(run_at=timezone.now() - 5 * MINUTE)
    out = StringIO()
    with process(live=True, ready=True) as port:
        call_command("jobhealth", "--port", str(port), stdout=out)
    text = out.getvalue()
    for words in ("w-1: ready, 3 jobs", "leader     w-1", "default: 1 waiting, the oldest for 300 s", "All is well."):
        assert words in text
