"""``runjobworker`` at the command line: what it teaches, what it refuses, how it ends."""

import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import connection

from django_jobs import get_job
from django_jobs.management.commands import runjobworker
from django_jobs.models import Worker
from tests.app.jobs import mark
from tests.app.models import Mark
from tests.process.command import ROOT, environment


def run(*arguments, **settings):
    return subprocess.run(
        [sys.executable, "-m", "django", *arguments],
        cwd=ROOT,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_help_teaches_queues_shutdown_and_exit_codes():
    command = load_command_class(get_commands()["runjobworker"], "runjobworker")
    text = command.create_parser("manage.py", "runjobworker").format_help()
    for word in (
        "--queues urgent:5,default:40,bulk",
        "SIGTERM",
        "second signal",
        "Exit codes",
        "70",
        "71",
        "--drain",
        "--processes 4",
    ):
        assert word in text
    for word in ("--supervised", "--isolated"):
        assert word not in text, "that is between our own processes"
    for word in ("--max-jobs", "--max-memory", "--reload", "--health-port"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--queues", "urgnt"], ["'urgnt'", "Did you mean 'urgent'?", "default, urgent, bulk"]),
        (["--queues", "urgent:many"], ["'many'", "--queues urgent:5,default:40,bulk"]),
        (["--queues", "urgent:0"], ["'0'", "1 to 1000"]),
        (["--queues", "urgent:5,urgent"], ["'urgent' is named twice"]),
        (["--queues", "urgent,,bulk"], ["empty name"]),
        (["--queues", "urgent:²"], ["no number"]),
        (["--concurrency", "0"], ["--concurrency must be 1 to 1000, not 0"]),
        (["--concurrency", "-3"], ["--concurrency must be 1 to 1000, not -3"]),
        (["--queues", "urgent:5,bulk:2", "--concurrency", "7"], ["--concurrency 7", "Leave one of the two out"]),
        (["--drain-horizon", "5"], ["--drain-horizon needs --drain"]),
        (["--drain", "--drain-horizon", "-1"], ["--drain-horizon must be 0 to"]),
        (["--drain", "--drain-horizon", "nan"], ["--drain-horizon must be 0 to"]),
        (["--drain", "--drain-horizon", "inf"], ["--drain-horizon must be 0 to"]),
        (["--shutdown-timeout", "-1"], ["--shutdown-timeout must be 0 to"]),
        (["--processes", "0"], ["--processes must be 1 to 256, not 0"]),
        (["--processes", "257"], ["--processes must be 1 to 256, not 257"]),
        (["--max-jobs", "0"], ["--max-jobs must be 1 or more, not 0"]),
        (["--max-memory", "-1"], ["--max-memory must be 1 or more, not -1"]),
        (["--reload", "--drain"], ["--reload", "--drain", "leave one out"]),
        (["--health-port", "99999"], ["port 99999"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("--") else None,
)
def test_wrong_arguments_are_refused_with_what_to_write_instead(arguments, words):
    with pytest.raises(CommandError) as refusal:
        call_command("runjobworker", *arguments)
    for word in words:
        assert word in str(refusal.value)
    assert refusal.value.returncode == 1


def test_wrong_settings_are_refused_with_every_fault_named(settings):
    settings.DJANGO_JOBS = {"QUEUES": [], "LEESE": 5, "DATABASE": 7}
    with pytest.raises(CommandError) as refusal:
        call_command("runjobworker")
    for word in ("QUEUES", "LEESE", "Did you mean 'LEASE'?"):
        assert word in str(refusal.value)


@pytest.mark.parametrize("alias", ["nowhere", "defualt"])
def test_a_database_alias_that_does_not_exist_is_refused_by_name(settings, alias):
    settings.DJANGO_JOBS = {"DATABASE": alias}
    with pytest.raises(CommandError, match=alias):
        call_command("runjobworker")


def test_a_database_that_jobs_cannot_live_in_is_refused_by_its_kind(monkeypatch):
    monkeypatch.setattr(connection, "vendor", "mysql", raising=False)
    with pytest.raises(CommandError, match="is mysql; jobs can live in PostgreSQL or SQLite"):
        call_command("runjobworker")


def test_wrong_settings_end_a_process_with_exit_code_1_and_no_traceback():
    ended = run("runjobworker", LEESE=5)
    assert ended.returncode == 1
    assert "LEESE" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_that_cannot_be_reached_at_the_start_ends_with_exit_code_1(monkeypatch, tmp_path):
    if connection.vendor == "postgresql":
        monkeypatch.setenv("DATABASE_URL", f"postgresql://postgres@/nothing?host={tmp_path}")
    else:
        monkeypatch.setenv("TEST_SQLITE_DIR", str(tmp_path / "nowhere"))
    ended = run("runjobworker")
    assert ended.returncode == 1
    assert "cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_migrations_are_named_with_the_command_to_run(monkeypatch, tmp_path):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA empty")
        monkeypatch.setenv("PGOPTIONS", "-c search_path=empty")
    else:
        monkeypatch.setenv("TEST_SQLITE_DIR", str(tmp_path))
    try:
        ended = run("runjobworker")
    finally:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("DROP SCHEMA empty")
    assert ended.returncode == 1
    assert "not applied" in ended.stderr
    assert "manage.py migrate" in ended.stderr


def test_a_supervisor_passes_on_what_it_was_given_a_time_out_of_zero_too(monkeypatch):
    """Its own patience is reckoned from it: children that took it for the default would be killed in mid-run."""
    passed_on = []
    monkeypatch.setattr(runjobworker.Supervisor, "run", lambda self: passed_on.extend(self.options.child_options))
    call_command("runjobworker", "--processes", "2", "--shutdown-timeout", "0", "--no-scheduler", verbosity=0)
    assert {"--shutdown-timeout=0.0", "--no-scheduler", "--verbosity=0"} <= set(passed_on)


def test_a_drain_runs_what_is_there_and_ends_with_0():
    enqueued = mark.enqueue(label="drained")
    out = StringIO()
    call_command("runjobworker", "--drain", stdout=out)
    assert get_job(enqueued.id).status == "succeeded"
    assert "default+urgent+bulk (10 slots)" in out.getvalue()
    assert "job types" in out.getvalue()


def test_verbosity_0_says_nothing(capfd):
    out = StringIO()
    call_command("runjobworker", "--drain", verbosity=0, stdout=out)
    assert out.getvalue() == ""


def test_a_drain_in_a_process_of_its_own_leaves_its_row_among_the_workers():
    mark.enqueue(label="drained")
    ended = run("runjobworker", "--drain", "--queues", "default:3,bulk")
    assert (ended.returncode, Mark.objects.count()) == (0, 1), ended.stderr
    row = Worker.objects.get()
    assert row.stopped_at is not None
    assert row.queues == [{"queues": ["default"], "slots": 3}, {"queues": ["bulk"], "slots": 10}]
