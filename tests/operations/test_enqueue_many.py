"""Many jobs at once: any number, in order, all or none."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from django_jobs import enqueue
from django_jobs.exceptions import InvalidOption, InvalidPayload
from django_jobs.models import Job
from django_jobs.operations import enqueue as enqueue_module
from tests.app.models import Note
from tests.operations.handlers import anything, async_note, note
from tests.operations.support import VENDOR, claim, committing, on_postgresql, session, texts
from tests.uuid7 import instant_of

pytestmark = pytest.mark.django_db

MANY = 100_001 if VENDOR == "postgresql" else 5_001


def test_nothing_is_nothing():
    assert note.enqueue_many([]) == []
    assert note.enqueue_many(iter(())) == []
    assert note.enqueue_many([], spread=timedelta(hours=1)) == []
    assert note.enqueue_many([], idempotency_keys=[]) == []
    assert texts() == []


def test_the_result_is_in_the_order_of_the_payloads():
    jobs = note.enqueue_many({"text": str(n)} for n in range(2500))
    assert [job.status for job in jobs] == ["pending"] * 2500
    stored = {job.id: job.payload["text"] for job in Job.objects.all()}
    assert [stored[job.id] for job in jobs] == [str(n) for n in range(2500)]
    assert sorted(job.id for job in jobs) == [job.id for job in jobs]


def test_a_hundred_thousand_jobs_are_no_special_case():
    jobs = note.enqueue_many({"number": n} for n in range(MANY))
    assert len({job.id for job in jobs}) == Job.objects.count() == MANY


def test_no_more_than_two_batches_of_payloads_are_in_memory(monkeypatch):
    alive, most = 0, 0

    class Payload(dict):
        def __init__(self, **fields):
            nonlocal alive, most
            super().__init__(fields)
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    monkeypatch.setattr(enqueue_module, "BATCH", 500)
    jobs = note.enqueue_many(Payload(number=n) for n in range(5000))
    assert len(jobs) == Job.objects.count() == 5000
    assert most <= 1001


@pytest.mark.parametrize("wrong", [0, 1, 999, 1000, 10_000, 10_500])
def test_one_wrong_payload_refuses_all_and_is_named(wrong):
    note.enqueue(text="kept")
    payloads = ({"number": "x" if n == wrong else n} for n in range(11_000))
    with pytest.raises(InvalidPayload, match=f"^Payload number {wrong}: .*number: input should be a valid integer"):
        note.enqueue_many(payloads)
    assert texts() == ["kept"]


def test_an_error_of_the_generator_itself_refuses_all():
    def payloads():
        yield {"text": "a"}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        note.enqueue_many(payloads())
    assert texts() == []


def test_after_a_refusal_the_callers_transaction_goes_on():
    with transaction.atomic():
        with pytest.raises(InvalidPayload):
            note.enqueue_many([{"text": "a"}, {"text": 1}])
        note.enqueue(text="b")
    assert texts() == ["b"]


@committing
@pytest.mark.parametrize("options", [{}, {"spread": timedelta(minutes=1)}], ids=["plain", "spread"])
def test_the_payloads_may_be_read_from_the_same_database_meanwhile(options):
    Note.objects.bulk_create(Note(text=str(n)) for n in range(3000))
    with transaction.atomic():
        rows = Note.objects.order_by("pk").values_list("text", flat=True).iterator(chunk_size=100)
        note.enqueue_many(({"text": text} for text in rows), **options)
    assert texts() == [str(n) for n in range(3000)]


@committing
def test_the_payloads_may_enqueue_other_jobs_meanwhile():
    def payloads():
        for n in range(3):
            enqueue("operations.async", {"text": "inner"})
            yield {"text": str(n)}

    note.enqueue_many(payloads())
    assert sorted(texts()) == ["0", "1", "2", "inner", "inner", "inner"]


NASTY = [
    "",
    "\\N",
    "\\.",
    "\t",
    "\n",
    "\r\n",
    "\\",
    "\\\\n",
    "a\\tb",
    '"',
    "'",
    "%s %(x)s",
    "{}",
    "\u2028",
    "\x1f",
    "\U0001f600",
]


def test_tabs_newlines_backslashes_and_unicode_come_through():
    note.enqueue_many({"text": text} for text in NASTY)
    note.enqueue_many(({"text": text} for text in NASTY), idempotency_keys=[f"k{n}" for n in range(len(NASTY))])
    assert texts() == NASTY * 2


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    scalars | storable_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(storable_text, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=5))
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_accepted_comes_back_equal(db, given_values):
    single = [anything.enqueue(value=value).id for value in given_values]
    bulk = [job.id for job in anything.enqueue_many({"value": value} for value in given_values)]
    decode = anything.job_type.signature.decode
    with transaction.atomic():
        stored = {str(job_id): payload for job_id, payload in raw_payloads()}
    for ids in (single, bulk):
        assert [decode(stored[str(job_id)])["value"] for job_id in ids] == given_values


def raw_payloads():
    from django.db.models import TextField
    from django.db.models.functions import Cast

    return Job.objects.annotate(raw=Cast("payload", TextField())).values_list("id", "raw")


def test_jobs_are_spread_evenly():
    begin = timezone.now()
    jobs = note.enqueue_many([{"number": n} for n in range(10)], spread=timedelta(minutes=10))
    assert [job.status for job in jobs] == ["pending"] + ["scheduled"] * 9
    run_ats = list(Job.objects.order_by("id").values_list("run_at", flat=True))
    assert abs(run_ats[0] - begin) < timedelta(seconds=5)
    assert [b - a for a, b in pairwise(run_ats)] == [timedelta(minutes=1)] * 9


def test_the_arrivals_of_a_fan_out_are_even():
    """500,000 over 10 minutes are 833 a second; here a hundredth of that."""
    jobs = note.enqueue_many(({"number": n} for n in range(5000)), spread=timedelta(minutes=10))
    run_at = Job.objects.order_by("run_at").values_list("run_at", flat=True)
    arrivals = Counter((at - run_at[0]) // timedelta(seconds=1) for at in run_at)
    assert len(jobs) == 5000
    assert sorted(arrivals) == list(range(600))
    assert set(arrivals.values()) <= {8, 9}


def test_a_spread_starts_at_run_at_or_after_the_delay():
    start = timezone.now() + timedelta(days=1)
    note.using(run_at=start).enqueue_many([{}] * 2, spread=timedelta(minutes=1))
    assert list(Job.objects.order_by("id").values_list("run_at", flat=True)) == [start, start + timedelta(seconds=30)]
    jobs = note.using(delay=timedelta(hours=1)).enqueue_many([{}] * 2, spread=timedelta(minutes=1))
    assert [job.status for job in jobs] == ["scheduled"] * 2


def test_a_spread_over_the_end_of_summer_time_stays_even():
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    start = datetime(2031, 11, 2, 0, 30, tzinfo=ZoneInfo("America/New_York"))
    note.using(run_at=start).enqueue_many([{}] * 4, spread=timedelta(hours=4))
    hours = [at.astimezone(UTC).hour for at in Job.objects.order_by("id").values_list("run_at", flat=True)]
    assert hours == [4, 5, 6, 7]


@pytest.mark.parametrize("spread", [timedelta(seconds=-1), 60, None, timedelta.max], ids=repr)
def test_a_spread_that_is_no_time_is_refused(spread):
    with pytest.raises(InvalidOption, match="spread must be a timedelta"):
        note.enqueue_many([{}], spread=spread)


def test_an_async_handlers_jobs_are_enqueued_too():
    assert len(async_note.enqueue_many([{"text": "a"}])) == 1


@committing
def test_a_bulk_is_claimed_in_its_order():
    jobs = note.enqueue_many({"number": n} for n in range(300))
    with session() as opened:
        assert [job.id for job in claim(opened, limit=300)] == [job.id for job in jobs]


@committing
def test_without_a_transaction_a_bulk_makes_its_own():
    with pytest.raises(InvalidPayload):
        note.enqueue_many({"number": n if n < 1500 else "x"} for n in range(2000))
    assert texts() == []
    note.enqueue_many([{}])
    assert Job.objects.count() == 1


@on_postgresql
def test_a_bulk_costs_one_copy_for_ten_thousand_jobs(django_assert_max_num_queries):
    note.enqueue_many([{}])
    with django_assert_max_num_queries(8):
        note.enqueue_many([{}] * 20_000)


@override_settings(DJANGO_JOBS={"QUEUES": ["a\u00e4 \\ 'q\""]})
def test_a_strange_queue_name_comes_through_copy():
    note.enqueue_many([{}])
    assert Job.objects.get().queue == "a\u00e4 \\ 'q\""


def test_ids_carry_the_time_of_enqueueing():
    (job,) = note.enqueue_many([{}])
    assert abs(instant_of(job.id) - timezone.now()) < timedelta(seconds=5)
