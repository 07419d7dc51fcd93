"""Processes over TLS: none of them touches the encrypted connection of another."""

import os
import signal

import psycopg
import pytest
from django.db import connections

from django_jobs import get_job
from django_jobs.models import Job
from tests.app.jobs import mark, mark_atomic_isolated
from tests.app.models import Mark
from tests.operations.support import on_postgresql
from tests.tls_server import TlsServer
from tests.waiting import wait_for
from tests.worker.elsewhere import other_server

pytestmark = on_postgresql


@pytest.fixture
def over_tls(monkeypatch, committed_data):
    """This test and the processes that it starts use a database there."""
    with TlsServer() as server:
        with psycopg.connect(server.url(), autocommit=True) as session:
            session.execute("CREATE DATABASE test_django_jobs")
        monkeypatch.setenv("DATABASE_URL", server.url("django_jobs"))
        with other_server(server, NAME="test_django_jobs"):
            yield server
            connections["default"].close()


def test_a_supervisor_its_children_and_theirs_disturb_no_connection_of_each_other(over_tls, start_supervisor):
    """Processes are spawned and killed, and the supervisor itself connects after each death."""
    supervisor = start_supervisor(2, "--concurrency", "4", LEASE=60)
    jobs = []
    for _ in range(3):
        jobs += mark.using(max_attempts=100).enqueue_many([{"label": "here"}] * 150)
        jobs += mark_atomic_isolated.using(max_attempts=100).enqueue_many([{"label": "there", "fail": False}] * 20)
        wait_for(lambda: Mark.objects.filter(label="there").exists(), timeout=60, message=supervisor.output)
        os.kill(min(supervisor.wait_for_workers(2)), signal.SIGKILL)
    wait_for(lambda: not Job.objects.exists(), timeout=90, message=supervisor.output)
    assert {get_job(one.id).status for one in jobs} == {"succeeded"}
    assert {entry["message"].partition(" (")[0] for one in jobs for entry in get_job(one.id).errors} <= {
        f"Attempt {number} was lost: worker died: SIGKILL" for number in range(1, 100)
    }
    for trouble in ("SSL", "bad record mac", "unexpected EOF", "not available", "could not be renewed"):
        assert trouble not in supervisor.output
