"""``atomic=True``: the handler's writes and the job's completion commit together, or neither does."""

import threading

import pytest
from django.db import IntegrityError, OperationalError, connection, connections, transaction

from django_jobs import RunningJob, get_job
from django_jobs.models import Job, JobHistory
from tests.app.models import Mark, Note
from tests.waiting import wait_for
from tests.worker.embedded import drain, running_worker


def marks():
    return list(Mark.objects.order_by("pk").values_list("label", flat=True))


def test_the_writes_and_the_completion_commit_together(job):
    @job("writes", atomic=True)
    def writes():
        Mark.objects.create(label="written")
        return {"rows": 1}

    enqueued = writes.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.result, marks()) == ("succeeded", {"rows": 1}, ["written"])
    assert JobHistory.objects.get().worker


def test_a_handler_that_raises_leaves_nothing_behind_but_its_error(job):
    @job("raises", atomic=True, max_attempts=2)
    def raises():
        Mark.objects.create(label="never")
        raise ValueError("after the write")

    enqueued = raises.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("dead", [])


def test_jobs_enqueued_by_the_handler_come_with_the_commit_only(job):
    @job("follow_up")
    def follow_up():
        Mark.objects.create(label="follow-up")

    @job("chains", atomic=True, max_attempts=2)
    def chains(run: RunningJob):
        follow_up.enqueue()
        if run.attempt == 1:
            raise ValueError("first")

    chains.enqueue()
    drain()
    assert marks() == ["follow-up"]


def test_a_swallowed_integrity_error_is_never_a_success_with_the_writes_missing(job):
    Note.objects.create(text="taken")

    @job("swallows", atomic=True, max_attempts=1)
    def swallows():
        Mark.objects.create(label="A")
        try:
            Note.objects.create(text="taken")
        except IntegrityError:
            pass

    enqueued = swallows.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, marks()) == ("dead", [])
    assert "swallowed a database error" in info.last_error


def test_a_swallowed_error_of_a_raw_statement_is_never_a_success_with_the_writes_missing(job):
    @job("swallows_raw", atomic=True, max_attempts=1)
    def swallows_raw():
        Mark.objects.create(label="A")
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT no_such_column FROM tests_app_mark")
        except Exception:
            pass

    enqueued = swallows_raw.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) in [("dead", []), ("succeeded", ["A"])]


def test_an_integrity_error_behind_a_savepoint_of_its_own_is_the_handlers_business(job):
    Note.objects.create(text="taken")

    @job("careful", atomic=True)
    def careful():
        Mark.objects.create(label="A")
        try:
            with transaction.atomic():
                Note.objects.create(text="taken")
        except IntegrityError:
            Mark.objects.create(label="B")

    enqueued = careful.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("succeeded", ["A", "B"])


def test_without_any_atomic_a_swallowed_integrity_error_keeps_the_other_writes(job):
    Note.objects.create(text="taken")

    @job("swallows_plainly", max_attempts=1)
    def swallows_plainly():
        Mark.objects.create(label="A")
        try:
            Note.objects.create(text="taken")
        except IntegrityError:
            pass

    enqueued = swallows_plainly.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("succeeded", ["A"])


def test_a_lease_taken_away_meanwhile_rolls_everything_back(job, caplog):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite: the run's own write transaction keeps everybody else from taking its lease")
    started, taken = threading.Event(), threading.Event()
    runs = []

    @job("robbed", atomic=True)
    def robbed():
        runs.append(1)
        Mark.objects.create(label=f"run {len(runs)}")
        if len(runs) == 1:
            started.set()
            assert taken.wait(20)

    enqueued = robbed.enqueue()
    with running_worker():
        assert started.wait(10)
        Job.objects.filter(pk=enqueued.id).update(
            status="pending", lease_token=None, locked_until=None, locked_by="", attempts=0
        )
        taken.set()
        wait_for(lambda: get_job(enqueued.id).status == "succeeded")
    assert marks() == ["run 2"]
    assert "the lease is lost" in caplog.text
    assert JobHistory.objects.count() == 1


def test_a_hook_that_raises_after_the_commit_is_logged_and_the_job_is_done(job, caplog):
    @job("hooked", atomic=True)
    def hooked():
        Mark.objects.create(label="written")
        transaction.on_commit(lambda: Mark.objects.create(label="hook 1"))
        transaction.on_commit(lambda: 1 / 0)

    enqueued = hooked.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, marks()) == ("succeeded", 1, ["written", "hook 1"])
    assert "a hook after its commit failed" in caplog.text


def test_a_hook_that_exits_after_the_commit_does_not_repeat_the_job(job):
    @job("exits_late", atomic=True)
    def exits_late():
        Mark.objects.create(label="written")

        def leave():
            raise SystemExit(1)

        transaction.on_commit(leave)

    enqueued = exits_late.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("succeeded", ["written"])


def test_a_handler_that_asks_for_a_rollback_is_not_a_success(job):
    @job("rolls_back", atomic=True, max_attempts=1)
    def rolls_back():
        Mark.objects.create(label="never")
        transaction.set_rollback(True)

    enqueued = rolls_back.enqueue()
    drain()
    assert (get_job(enqueued.id).status, marks()) == ("dead", [])


@pytest.fixture
def break_commit(monkeypatch):
    """Let the first commit with a Mark in it go wrong, in the thread that calls."""
    broken = []

    def break_commit(*, after):
        wrapper = connections["default"]
        really_commit = wrapper.commit

        def commit():
            if not broken:
                broken.append(1)
                if after:
                    really_commit()
                raise OperationalError("the answer was lost")
            really_commit()

        wrapper.commit = commit

    return break_commit


@pytest.mark.parametrize("after", [True, False], ids=["after it went through", "before it went through"])
def test_a_commit_whose_answer_is_lost_is_decided_by_the_row(job, break_commit, after):
    runs = []

    @job("unlucky", atomic=True)
    def unlucky(run: RunningJob):
        runs.append(run.attempt)
        Mark.objects.create(label=f"run {run.attempt}")
        if run.attempt == 1:
            break_commit(after=after)

    enqueued = unlucky.enqueue()
    drain()
    info = get_job(enqueued.id)
    expected = ["run 1"] if after else ["run 2"]
    assert (info.status, info.attempts, marks()) == ("succeeded", len(runs), expected)


def test_a_connection_killed_right_before_the_commit_rolls_back_and_retries(job):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connection to kill")

    @job("killed", atomic=True)
    def killed(run: RunningJob):
        Mark.objects.create(label=f"run {run.attempt}")
        if run.attempt == 1:
            wrapper = connections["default"]
            really_commit = wrapper.commit

            def commit():
                wrapper.commit = really_commit
                with wrapper.cursor() as cursor:
                    try:
                        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                    except Exception:
                        pass
                really_commit()

            wrapper.commit = commit

    enqueued = killed.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, info.attempts, marks()) == ("succeeded", 2, ["run 2"])


def test_an_atomic_run_is_read_committed_whatever_the_default(job):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one isolation level")

    @job("isolated", atomic=True)
    def isolated():
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            return cursor.fetchone()[0]

    enqueued = isolated.enqueue()
    drain()
    assert get_job(enqueued.id).result == "read committed"


def test_a_report_of_an_atomic_run_is_in_its_history(job):
    @job("reports", atomic=True)
    def reports(run: RunningJob):
        run.report(rows_processed=120)
        run.report(skipped=3)

    enqueued = reports.enqueue()
    drain()
    assert get_job(enqueued.id).metrics == {"rows_processed": 120, "skipped": 3}


def test_an_atomic_run_that_failed_before_keeps_its_errors_in_the_history(job):
    @job("second_time_lucky", atomic=True)
    def second_time_lucky(run: RunningJob):
        if run.attempt == 1:
            raise ValueError("first")

    enqueued = second_time_lucky.enqueue()
    drain()
    info = get_job(enqueued.id)
    assert (info.status, [entry["message"] for entry in info.errors]) == ("succeeded", ["first"])
