"""A claim takes what it was asked for, also where statistics mislead the planner.

``IN (SELECT … LIMIT n FOR UPDATE SKIP LOCKED)`` took 201 rows for 10 under exactly these conditions: the sub-select is
run again for each outer row and locks other rows each time.
"""

import pytest

from django_jobs.models import Job
from tests.factories import JobFactory

from .support import another_connection, claim

pytestmark = pytest.mark.django_db(transaction=True)

PLANNER = ("hashjoin", "mergejoin", "nestloop", "material", "hashagg", "sort", "indexscan", "bitmapscan", "tidscan")

MANY_LEASED = """
INSERT INTO django_jobs_job (id, queue, type, payload, max_attempts, status, locked_until, lease_token)
SELECT gen_random_uuid(), 'default', 'noop', '{}', 5, 'processing', statement_timestamp() + interval '1 min', -n
  FROM generate_series(1, 5000) n
"""


@pytest.fixture
def stale_statistics():
    """One ready job among thousands is all the planner knows of."""
    JobFactory()
    with another_connection(autocommit=True) as connection:
        connection.execute(MANY_LEASED)
        connection.execute("ALTER TABLE django_jobs_job SET (autovacuum_enabled = false)")
        connection.execute("ANALYZE django_jobs_job")
        JobFactory.create_many(200)
        yield
        connection.execute("ALTER TABLE django_jobs_job RESET (autovacuum_enabled)")


def leased_by(worker):
    return Job.objects.filter(status="processing", locked_by=worker).count()


@pytest.mark.usefixtures("stale_statistics")
@pytest.mark.parametrize("off", [(), *[(name,) for name in PLANNER], PLANNER[:2], PLANNER[3:6]], ids="-".join)
def test_a_claim_for_ten_changes_ten_rows(open_session, off):
    session = open_session("greedy")
    session.stage()
    for name in off:
        session._connection.execute(f"SET enable_{name} = off")
    assert len(claim(session, limit=10)) == 10
    assert leased_by("greedy") == 10
    assert len(claim(session, limit=1)) == 1
    assert leased_by("greedy") == 11


@pytest.mark.usefixtures("stale_statistics")
def test_neither_does_a_claim_from_several_queues(open_session):
    JobFactory.create_many(200, queue="bulk", lost_runs=1)
    JobFactory.create_many(200, queue="bulk")
    session = open_session("greedy")
    assert len(claim(session, limit=10, queues=("bulk", "default", "urgent"))) == 10
    assert leased_by("greedy") == 10
