"""Over TLS, with a server that takes nothing else."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models.functions import Now

from django_jobs import RunningJob, get_job
from django_jobs.engines.protocol import EngineUnavailable
from django_jobs.models import Job
from tests.engines.support import own_session
from tests.operations.support import on_postgresql
from tests.tls_server import TlsServer, make_certificate
from tests.waiting import wait_for
from tests.worker.elsewhere import other_server
from tests.worker.embedded import running_worker
from tests.worker.test_outages import terminate_other_sessions

pytestmark = on_postgresql

SESSIONS = """
SELECT a.pid, s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
 WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
"""


@pytest.fixture(params=["require", "verify-full"])
def over_tls(request):
    """Everybody's alias ``default`` goes there."""
    with TlsServer() as server, other_server(server, OPTIONS=server.place["OPTIONS"] | {"sslmode": request.param}):
        yield server
        connections["default"].close()


def sessions():
    """The pid of each session but ours, and whether it is encrypted."""
    with connection.cursor() as cursor:
        cursor.execute(SESSIONS)
        return dict(cursor.fetchall())


def test_loop_listener_and_renewer_work_and_come_back_when_their_sessions_are_ended(over_tls, job, configure):
    """Polls are too rare to matter: whoever is asleep must be woken."""
    configure(LEASE=3, POLL_EVERY=600)
    runs, release = [], threading.Event()

    @job("long")
    def long(run: RunningJob):
        runs.append(run.attempt)
        assert release.wait(60)

    @job("noop")
    def noop():
        pass

    with running_worker() as worker:
        wait_for(lambda: worker.posture == "asleep")
        enqueued = long.enqueue()
        wait_for(lambda: runs, message="the sleeper to be woken")
        before = sessions()
        assert len(before) >= 3, "loop, renewer, maintenance"
        assert set(before.values()) == {True}
        terminate_other_sessions()
        outlived = Job.objects.filter(pk=enqueued.id, locked_until__gt=Now(), run_at__lt=Now() - timedelta(seconds=5))
        wait_for(outlived.exists, timeout=20, message="a lease that the renewer's new session has renewed")
        release.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
        wait_for(lambda: worker.posture == "asleep", timeout=20)
        later = noop.enqueue()
        wait_for(lambda: get_job(later.id).status == "succeeded", message="the sleeper to be woken again")
        after = sessions()
        assert not before.keys() & after.keys()
        assert set(after.values()) == {True}
    assert runs == [1]


@pytest.mark.parametrize("over_tls", ["verify-full"], indirect=True)
def test_a_server_that_cannot_prove_who_it_is_is_not_talked_to(over_tls, tmp_path):
    other = tmp_path / "other.crt"
    make_certificate(other, tmp_path / "other.key")
    connections["default"].settings_dict["OPTIONS"]["sslrootcert"] = str(other)
    with own_session() as session, pytest.raises(EngineUnavailable, match="certificate verify failed"):
        session.my_leases()


def test_without_tls_it_is_not_reached(over_tls):
    connections["default"].settings_dict["OPTIONS"]["sslmode"] = "disable"
    with own_session() as session, pytest.raises(EngineUnavailable, match="no encryption"):
        session.my_leases()
