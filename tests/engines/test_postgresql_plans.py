"""Which indexes the engine's statements use, in a table of realistic size: a rule about cost that no result shows."""

from datetime import timedelta

import pytest
from django.db import connections

from django_jobs import clock
from django_jobs.engines.postgresql.outcome_rows import encode_outcomes, encode_progress
from django_jobs.engines.postgresql.queries import query
from django_jobs.failure import Failure
from django_jobs.ids import uuid7
from django_jobs.outcomes import Buried, Finished, Rescheduled

from .support import another_connection

pytestmark = pytest.mark.django_db

PENDING, SCHEDULED, LEASED = 100_000, 20_000, 3_000

ROWS = f"""
INSERT INTO django_jobs_job (id, queue, type, payload, priority, max_attempts, status, run_at, lost_runs,
                             locked_by, locked_until, lease_token)
SELECT gen_random_uuid(), (ARRAY['default', 'urgent', 'bulk'])[1 + n %% 3], 'noop', '{{}}', n %% 5, 5, status,
       statement_timestamp() + CASE status WHEN 'scheduled' THEN (n %% 5000 - 100) * interval '1 s' ELSE '0' END,
       0, CASE status WHEN 'processing' THEN 'w' ELSE '' END,
       CASE status WHEN 'processing' THEN statement_timestamp() + interval '1 min' END,
       CASE status WHEN 'processing' THEN n END
  FROM (SELECT n, CASE WHEN n <= {PENDING} THEN 'pending' WHEN n <= {PENDING + SCHEDULED} THEN 'scheduled'
                       ELSE 'processing' END AS status
          FROM generate_series(1, {PENDING + SCHEDULED + LEASED}) n) numbered
"""


@pytest.fixture(scope="module")
def leases(django_db_setup, django_db_blocker):
    """A full table, analysed; the ids and tokens of all runs."""
    with django_db_blocker.unblock(), another_connection(autocommit=True) as connection:
        connection.execute(ROWS.replace("%%", "%"))
        connection.execute("ANALYZE django_jobs_job")
        yield connection.execute("SELECT id, lease_token FROM django_jobs_job WHERE status = 'processing'").fetchall()
        connection.execute("TRUNCATE django_jobs_job")
        connections.close_all()


@pytest.fixture(params=["custom plan", "generic plan"])
def explain(request, leases):
    """Plans of a statement with these terms, as a list of the plan's nodes. Nothing is changed."""
    with another_connection() as connection:
        mode = request.param.replace(" ", "_")
        connection.execute(f"SET plan_cache_mode = force_{mode}")

        def explain(name, terms, analyze=False):
            options = "FORMAT JSON, ANALYZE" if analyze else "FORMAT JSON"
            text = connection.execute(f"EXPLAIN ({options}) {query(name)}", terms, prepare=True)
            ((plans,),) = text.fetchall()
            connection.rollback()
            return list(nodes(plans[0]["Plan"]))

        yield explain
        connection.rollback()


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def indexes(plan):
    return {node["Index Name"] for node in plan if "Index Name" in node}


def kinds(plan):
    return {node["Node Type"] for node in plan}


def scans_of_jobs(plan):
    return {
        node["Node Type"]
        for node in plan
        if node.get("Relation Name") == "django_jobs_job" and node["Node Type"] != "ModifyTable"
    }


def claim_terms(**changes):
    terms = {
        "queues": ["default", "urgent"],
        "limit": 50,
        "suspects": 1,
        "worker": "w",
        "lease": timedelta(seconds=60),
        "patience": timedelta(hours=24),
    }
    return terms | changes


def outcomes_of(leases, count, kind=None):
    failure = Failure.of("ValueError", "no")
    make = {
        "finish": lambda i, t: Finished(job_id=i, token=t, result={"n": 1}),
        "again": lambda i, t: Rescheduled(job_id=i, token=t, delay=timedelta(seconds=5), failure=failure),
        "bury": lambda i, t: Buried(job_id=i, token=t, reason="exhausted", failure=failure, fingerprint="1:0"),
    }
    chosen = [kind] * count if kind else [("finish", "again", "bury")[n % 3] for n in range(count)]
    return [make[which](job_id, token) for which, (job_id, token) in zip(chosen, leases, strict=False)]


def settle_terms(leases, count, kind=None):
    return {"outcomes": encode_outcomes(outcomes_of(leases, count, kind), "w", clock.milliseconds())}


def lease_terms(leases, count):
    ids, tokens = zip(*leases[:count], strict=True)
    return {"ids": list(ids), "tokens": list(tokens), "lease": timedelta(seconds=60)}


def work(plan):
    """How many rows all the nodes together produced or threw away."""
    removed = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    return sum(node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(key, 0) for key in removed)) for node in plan)


# Claim


@pytest.mark.parametrize("limit", [1, 50, 500])
def test_a_claim_reads_the_claim_index_in_order(explain, limit):
    plan = explain("claim", claim_terms(limit=limit))
    assert {"django_jobs_job_claim", "django_jobs_job_suspect"} <= indexes(plan)
    assert not {"django_jobs_job_lease", "django_jobs_job_due", "django_jobs_job_pkey"} & indexes(plan)
    assert not {"Sort", "Incremental Sort", "Hash Join", "Merge Join"} & kinds(plan)
    assert scans_of_jobs(plan) == {"Index Scan", "Tid Scan"}


def test_a_claim_stops_when_it_has_enough(explain):
    """A later queue's rows are not even looked at: the nested loop is lazy."""
    plan = explain("claim", claim_terms(), analyze=True)
    assert work(plan) < 1000
    locked = sum(node["Actual Rows"] * node["Actual Loops"] for node in plan if node["Node Type"] == "LockRows")
    assert locked == 50


# By id


@pytest.mark.parametrize("kind", ["finish", "again", "bury", None])
@pytest.mark.parametrize("count", [1, 50, 500])
def test_settling_finds_its_rows_by_the_primary_key_alone(explain, leases, count, kind):
    plan = explain("settle", settle_terms(leases, count, kind))
    assert indexes(plan) == {"django_jobs_job_pkey"}
    assert scans_of_jobs(plan) <= {"Index Scan", "Bitmap Heap Scan"}


def test_the_work_of_settling_grows_with_the_number_of_outcomes_and_not_with_its_square(explain, leases):
    for count in (50, 500, 2000):
        plan = explain("settle", settle_terms(leases, count), analyze=True)
        assert work(plan) < 30 * count


@pytest.mark.parametrize("count", [1, 50, 500])
def test_renewing_finds_its_rows_by_the_primary_key_alone(explain, leases, count):
    plan = explain("renew", lease_terms(leases, count))
    assert indexes(plan) == {"django_jobs_job_pkey"}
    assert scans_of_jobs(plan) <= {"Index Scan", "Bitmap Heap Scan"}


def test_the_work_of_renewing_grows_with_the_number_of_leases(explain, leases):
    plan = explain("renew", lease_terms(leases, 2000), analyze=True)
    assert work(plan) < 10 * 2000


def test_progress_finds_its_rows_by_the_primary_key_alone(explain, leases):
    values = {job_id: (token, 0.5) for job_id, token in leases[:50]}
    plan = explain("progress", {"progress": encode_progress(values), "ids": list(values)})
    assert indexes(plan) == {"django_jobs_job_pkey"}
    assert "Seq Scan" not in scans_of_jobs(plan)


def test_a_completion_finds_its_row_by_the_primary_key_alone(explain, leases):
    job_id, token = leases[0]
    terms = {"id": job_id, "token": token, "history_id": uuid7(), "duration_ms": 1, "result": None, "metrics": None}
    assert indexes(explain("complete_within", terms)) == {"django_jobs_job_pkey"}


def test_the_look_at_missing_leases_uses_the_primary_key(explain, leases):
    assert indexes(explain("read_leases", lease_terms(leases, 50))) == {"django_jobs_job_pkey"}


# By time


def test_staging_reads_the_due_jobs_of_its_group_alone(explain):
    """It may sort them: they are few, or the index is read in order."""
    plan = explain("stage", {"queue": "default", "priority": 0, "limit": 1000}, analyze=True)
    assert indexes(plan) == {"django_jobs_job_due"}
    assert scans_of_jobs(plan) <= {"Index Scan", "Bitmap Heap Scan", "Tid Scan"}
    assert work(plan) < 500, "about 30 of 1,333 are due"


def test_looking_for_due_jobs_hops_from_group_to_group(explain):
    plan = explain("due", {}, analyze=True)
    assert indexes(plan) == {"django_jobs_job_due"}
    assert scans_of_jobs(plan) <= {"Index Scan", "Index Only Scan"}
    assert work(plan) < 300, "15 groups of 1,333 jobs"


def test_the_leaders_look_hops_along_the_indexes(explain):
    plan = explain("look", {}, analyze=True)
    assert scans_of_jobs(plan) <= {"Index Scan", "Index Only Scan"}
    assert indexes(plan) >= {"django_jobs_job_due", "django_jobs_job_lease"}
    assert work(plan) < 500


def test_while_nobody_sleeps_the_leader_does_not_touch_the_ready_jobs(explain):
    claims = [node for node in explain("look", {}, analyze=True) if node.get("Index Name") == "django_jobs_job_claim"]
    assert claims
    assert all(node["Actual Loops"] == 0 for node in claims)


def test_lapsed_leases_are_found_by_the_index_of_leases(explain):
    plan = explain("expired", {"limit": 500, "grace": timedelta(0)})
    assert indexes(plan) == {"django_jobs_job_lease"}
    assert "Sort" not in kinds(plan)


def test_a_workers_leases_are_found_among_the_leased(explain):
    assert indexes(explain("my_leases", {"worker": "w"})) == {"django_jobs_job_lease"}


def test_a_draining_worker_does_not_read_the_table(explain):
    plan = explain("outstanding", {"queues": ["none", "empty"], "horizon": timedelta(0)}, analyze=True)
    assert "Seq Scan" not in scans_of_jobs(plan)
    assert work(plan) < LEASED + 100
