"""PostgreSQL's own kinds of trouble, and that they pass."""

import logging
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections, transaction

from django_jobs import clock, discard_dead
from django_jobs.engines.protocol import EngineUnavailable, NoPartition
from django_jobs.engines.values import ClaimRequest
from django_jobs.ids import uuid7
from django_jobs.models import JobHistory
from django_jobs.models.partitions import leaf_name
from tests.factories import DeadJobFactory, JobFactory

from .support import (
    another_connection,
    claim,
    claim_one,
    finished,
    history,
    in_threads,
    own_session,
    retry_lost,
    settle,
    settle_until_written,
    stored,
    whereabouts,
)

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timedelta(0)
REQUEST = ClaimRequest(queues=("default",), limit=10)


def execute(*statements):
    with another_connection(autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


# Outcomes and claims


def test_of_fifty_outcomes_the_one_with_a_nul_character_loses_its_texts(session, caplog):
    JobFactory.create_batch(50)
    runs = claim(session, limit=50)
    results = [f"text {number}" for number in range(49)] + ["NUL \0 character"]
    with caplog.at_level(logging.ERROR, logger="django_jobs.engine"):
        tick = session.tick([finished(run, result=result) for run, result in zip(runs, results, strict=True)], [])
    assert tick.written == {run.id: "succeeded" for run in runs}
    assert [history(run).result for run in runs] == [*results[:-1], None]
    assert [error["type"] for error in history(runs[-1]).errors] == ["Unrecordable"]
    assert str(runs[-1].id) in caplog.text


def test_a_claim_that_fails_does_not_undo_outcomes(session):
    JobFactory.create_batch(2)
    run = claim_one(session)
    impossible = ClaimRequest(queues=("default",), limit=-1)
    tick = session.tick([finished(run)], [REQUEST, impossible])
    assert tick.written == {run.id: "succeeded"}
    assert list(tick.jobs) == [[], []]
    assert whereabouts(run.id) == ["history"]
    assert len(claim(session)) == 1


def test_a_claim_that_fails_alone_is_trouble_that_passes(session):
    JobFactory()
    with pytest.raises(EngineUnavailable, match="LIMIT"):
        session.tick([], [ClaimRequest(queues=("default",), limit=-1)])
    assert len(claim(session)) == 1


def locks_of_sleepers():
    with another_connection() as connection:
        return connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()[0]


def test_who_gets_up_with_a_claim_that_was_never_sent_is_no_sleeper_afterwards(session):
    JobFactory.create_batch(2)
    run = claim_one(session)
    assert session.can_listen()
    assert session.lie_down(["default"])
    session.get_up_with_claim()
    session.tick([finished(run, result="NUL \0 character")], [REQUEST])
    session.get_up()
    assert locks_of_sleepers() == 0


# Connections


def kill(session):
    execute(f"SELECT pg_terminate_backend({session._connection.info.backend_pid})")


def test_a_killed_connection_is_made_anew_by_the_next_call(session):
    JobFactory.create_batch(2)
    run = claim_one(session)
    kill(session)
    with pytest.raises(EngineUnavailable):
        session.tick([finished(run)], [REQUEST])
    tick = session.tick([finished(run)], [REQUEST])
    assert tick.written == {run.id: "succeeded"}
    assert len(tick.jobs[0]) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.renew({}),
        lambda session: session.stage(),
        lambda session: session.rescue(retry_lost),
        lambda session: session.outstanding(["default"], NOW),
        lambda session: session.my_leases(),
        lambda session: session.show_progress({}),
        lambda session: session.wake("default"),
    ],
    ids=["renew", "stage", "rescue", "outstanding", "my_leases", "show_progress", "wake"],
)
def test_every_call_survives_a_killed_connection(open_session, call):
    session = open_session(lease=NOW)
    call(session)
    kill(session)
    with pytest.raises(EngineUnavailable):
        call(session)
    call(session)


def test_after_a_killed_connection_nobody_is_rescued_at_once(open_session, monkeypatch):
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    rescuer = open_session(lease=timedelta(seconds=1.5))
    rescuer.stage()
    kill(rescuer)
    JobFactory(lapsed=True)
    monkeypatch.setattr(clock, "monotonic", lambda: start + 1)
    with pytest.raises(EngineUnavailable):
        rescuer.rescue(retry_lost)
    assert list(rescuer.rescue(retry_lost)) == []


def test_nobody_is_rescued_while_the_server_has_not_been_up_for_the_grace(open_session, monkeypatch):
    JobFactory(lapsed=True)
    rescuer = open_session(lease=timedelta(days=300))
    rescuer.stage()
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start + timedelta(days=200).total_seconds())
    assert list(rescuer.rescue(retry_lost)) == []


def test_statements_are_prepared_on_a_connection_that_proved_to_be_a_session(session):
    JobFactory()
    assert session.can_listen()
    settle(session, finished(claim_one(session)))
    names = session._connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert len(names) == 2


# Isolation


@pytest.fixture
def serializable():
    execute("ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'")
    connections["default"].close()
    yield
    execute("ALTER ROLE CURRENT_USER RESET default_transaction_isolation")
    connections["default"].close()


@pytest.mark.usefixtures("serializable")
def test_workers_do_not_mind_a_serializable_default(statements, connection):
    with connection.cursor() as cursor:
        cursor.execute("SHOW default_transaction_isolation")
        assert cursor.fetchone() == ("serializable",)
    jobs = JobFactory.create_many(300)

    def drain(number):
        with own_session(f"w-{number}") as session:
            while runs := claim(session, limit=5):
                assert not session.renew({run.id: run.token for run in runs}).lost
                settle_until_written(session, *map(finished, runs))
                session.stage()

    in_threads(drain, 4)
    assert [whereabouts(job.id) for job in jobs] == [["history"]] * 300


@pytest.mark.usefixtures("serializable")
def test_a_run_in_its_own_transaction_begins_as_read_committed(statements, connection):
    with transaction.atomic(), connection.cursor() as cursor:
        statements.begin_run(connection)
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("read committed",)


# Partitions of the history


TODAY = datetime.now(UTC).date()
DAYS = [TODAY + timedelta(days=n) for n in range(-1, 8)]


@pytest.fixture
def no_partitions(statements, connection):
    execute(*(f"DROP TABLE IF EXISTS {leaf_name(day)}" for day in DAYS))
    yield
    statements.add_partitions(connection, DAYS)


def leaves():
    query = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'django_jobs_job_history'::regclass"
    with another_connection() as connection:
        return connection.execute(query).fetchone()[0]


@pytest.mark.usefixtures("no_partitions")
def test_a_missing_partition_is_made_and_the_tick_repeated(session, caplog):
    JobFactory.create_batch(3)
    runs = claim(session)
    outcomes = [finished(run) for run in runs]
    with pytest.raises(EngineUnavailable, match="partition"):
        session.tick(outcomes, [REQUEST])
    assert "no partition for today" in caplog.text
    assert len(settle(session, *outcomes).written) == 3


@pytest.mark.usefixtures("no_partitions")
def test_the_partition_is_made_for_the_day_of_the_databases_clock(session, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(days=40))
    JobFactory()
    outcome = finished(claim_one(session))
    with pytest.raises(EngineUnavailable, match="partition"):
        settle(session, outcome)
    assert len(settle(session, outcome).written) == 1


@pytest.mark.usefixtures("no_partitions")
def test_without_a_partition_outcomes_of_other_kinds_wait_too_but_nothing_is_lost(open_session):
    """A cancelled lost run needs a history row as well."""
    job = JobFactory(lapsed=True, cancel_requested_at=datetime.now(UTC))
    rescuer = open_session(lease=NOW)
    with pytest.raises(EngineUnavailable):
        rescuer.rescue(retry_lost)
    assert stored(job).status == "processing"
    while not rescuer.rescue(retry_lost):
        pass
    assert history(job).status == "cancelled"


@pytest.mark.usefixtures("no_partitions")
def test_a_run_that_cannot_complete_for_want_of_a_partition_says_so(session, statements, connection):
    JobFactory()
    run = claim_one(session)
    values = {"history_id": uuid7(), "duration_ms": 0, "result": None, "metrics": None}
    with pytest.raises(NoPartition), transaction.atomic():
        statements.complete_within(connection, run.id, run.token, **values)
    assert stored(run).lease_token == run.token
    statements.add_partitions(connection, DAYS)
    with transaction.atomic():
        assert statements.complete_within(connection, run.id, run.token, **values)


@contextmanager
def limited_role():
    """A role that may use the tables, but owns none."""
    execute(
        "CREATE ROLE limited",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO limited",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO limited",
    )
    try:
        yield
    finally:
        execute("DROP OWNED BY limited", "DROP ROLE limited")


@pytest.mark.usefixtures("no_partitions")
def test_where_the_role_may_not_make_one_the_log_gives_the_exact_sql(open_session, monkeypatch, caplog):
    connections["default"].ensure_connection()
    options = connections["default"].settings_dict["OPTIONS"]
    with limited_role():
        monkeypatch.setitem(options, "assume_role", "limited")
        session = open_session()
        JobFactory()
        run = claim_one(session)
        with pytest.raises(EngineUnavailable, match="partition"):
            settle(session, finished(run))
        assert stored(run).lease_token == run.token, "it stays leased"
        (record,) = [record for record in caplog.records if record.levelno == logging.CRITICAL]
        sql = record.getMessage().partition("runs:\n")[2].replace("<schema>", "public")
        execute(sql)
        assert settle(session, finished(run)).written == {run.id: "succeeded"}
        session.close()


@pytest.mark.usefixtures("no_partitions")
def test_discarding_makes_a_missing_partition():
    dead = DeadJobFactory()
    with transaction.atomic():
        assert discard_dead(dead.id) == 1
    assert JobHistory.objects.get().job_id == dead.id


@pytest.mark.usefixtures("no_partitions")
def test_partitions_are_made_once_by_however_many(statements, connection):
    made = []
    in_threads(lambda _: made.append(statements.add_partitions(connections["default"], DAYS)), 4)
    assert sum(made) == len(DAYS) == leaves()
    assert statements.add_partitions(connection, DAYS) == 0


@pytest.mark.usefixtures("no_partitions")
def test_partitions_are_made_beside_writers(statements, connection, session):
    statements.add_partitions(connection, DAYS[:2])
    JobFactory()
    run = claim_one(session)
    with another_connection() as writer:
        writer.execute("DELETE FROM django_jobs_job_history")
        assert statements.add_partitions(connection, DAYS) == len(DAYS) - 2
        assert settle(session, finished(run)).written == {run.id: "succeeded"}


def test_a_silence_as_long_as_the_grace_is_no_contact(open_session, monkeypatch):
    """A server that stood still: leases lapsed that their holders could not renew."""
    rescuer = open_session("rescuer", lease=timedelta(seconds=6))
    start = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: start)
    rescuer.stage()
    monkeypatch.setattr(clock, "monotonic", lambda: start + 1.9)
    rescuer.stage()
    JobFactory(lapsed=True)
    for seconds in (30, 31.9):
        monkeypatch.setattr(clock, "monotonic", lambda seconds=seconds: start + seconds)
        assert rescuer.rescue(retry_lost) == []
    monkeypatch.setattr(clock, "monotonic", lambda: start + 32.1)
    assert len(rescuer.rescue(retry_lost)) == 1
