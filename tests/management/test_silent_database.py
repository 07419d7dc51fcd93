"""A database, or a proxy before it, that takes everything and answers nothing: commands say so and end."""

import json
import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from django_jobs.management import database
from tests.operations.support import on_postgresql
from tests.tcp_proxy import BOTH
from tests.worker.elsewhere import behind_proxy

pytestmark = [
    on_postgresql,
    pytest.mark.django_db(transaction=True, available_apps=["django_jobs", "tests.app"]),
]

SECONDS = 2


@pytest.fixture(params=["from the start", "after it connected"])
def silence(request, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", timedelta(seconds=SECONDS))
    with behind_proxy() as proxy:
        del connections["default"].settings_dict["OPTIONS"]["connect_timeout"]
        if request.param == "from the start":
            proxy.cut(*BOTH, new=True)
        else:
            cut_once_connected(monkeypatch, proxy)
        yield proxy


def cut_once_connected(monkeypatch, proxy):
    stand_alone = database.stand_alone

    def connect_and_cut(*arguments):
        stand_alone(*arguments)
        connection.ensure_connection()
        proxy.cut(*BOTH, new=True)

    monkeypatch.setattr(database, "stand_alone", connect_and_cut)


def outcome_of(*words):
    """In a thread, so that a command that waits for ever fails the test and does not hang it."""
    out, outcome = StringIO(), []

    def run():
        try:
            call_command(*words, stdout=out)
        except (CommandError, SystemExit) as end:
            outcome.append(end)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, name="command under test", daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "the command has not ended"
    return outcome[0], out.getvalue()


def test_jobhealth_fails(silence):
    end, out = outcome_of("jobhealth", "--format", "json")
    assert end.code == 1
    report = json.loads(out)
    assert report["database"] is False
    assert "The jobs database does not answer" in report["faults"][0]


@pytest.mark.parametrize("words", [["runjobworker", "--drain"], ["runjobscheduler"]], ids=lambda words: words[0])
def test_a_process_that_is_to_run_for_long_does_not_start(silence, words):
    end, _ = outcome_of(*words)
    assert isinstance(end, CommandError)
    assert "The jobs database (alias 'default') cannot be used" in str(end)


def test_freejobs_frees_nothing(silence):
    end, _ = outcome_of("freejobs")
    assert isinstance(end, CommandError)
    assert "The jobs database does not answer, and nothing was freed" in str(end)


def test_what_runs_after_the_command_in_this_thread_has_its_usual_connection():
    usual = connections["default"]
    with database.bounded_connection():
        assert connections["default"] is not usual
    assert connections["default"] is usual
    with transaction.atomic(), database.bounded_connection():
        assert connections["default"] is usual
