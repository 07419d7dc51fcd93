"""What a schedule may say, and what the refusals say."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings

from django_jobs.exceptions import InvalidPayload, InvalidSchedule, UnknownJobType
from django_jobs.operations.schedule_spec import make_spec
from tests.operations import handlers

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
LATER = datetime(2026, 1, 1, tzinfo=UTC)


def spec(type=handlers.note, payload=None, **options):
    return make_spec("digest", type, payload, {"cron": "0 8 * * *"} | options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cron": ""}, 'give either cron="0 8 \\* \\* \\*" or every='),
        ({"every": timedelta(seconds=10)}, "give either"),
        ({"cron": "0 0 31 2 *"}, "never fires"),
        ({"cron": "0 0 8 * * *"}, "6 fields"),
        ({"cron": 5}, "must be a"),
        ({"cron": "", "every": timedelta(milliseconds=500)}, "1 second"),
        ({"cron": "", "every": 10}, "every=timedelta"),
        ({"timezone": "Asia/Calcuta"}, "Did you mean"),
        ({"timezone": "Local"}, "not an IANA time zone"),
        ({"crn": "x"}, "no option 'crn'. Did you mean 'cron'"),
        ({"jitter": timedelta(seconds=-1)}, "jitter must be"),
        ({"jitter": 5}, "jitter must be"),
        ({"jitter": None}, "jitter must be"),
        ({"catch_up": "lates"}, "Did you mean 'latest'"),
        ({"catch_up_limit": 0}, "catch_up_limit must be"),
        ({"catch_up_limit": 10_000}, "1 to 1000"),
        ({"catch_up_age": 5}, "catch_up_age must be"),
        ({"overlap": "replace"}, "'allow' or 'skip'"),
        ({"start_at": NAIVE}, "start_at must be a datetime with a time zone"),
        ({"end_at": NAIVE}, "end_at must be a datetime with a time zone"),
        ({"start_at": LATER, "end_at": LATER - timedelta(days=1)}, "is before start_at"),
        ({"start_at": datetime(1, 1, 1, tzinfo=UTC)}, "start_at must be between the years 1970 and 9000"),
        ({"end_at": datetime(9999, 1, 1, tzinfo=UTC)}, "end_at must be between the years 1970 and 9000"),
        ({"enabled": 1}, "True or False"),
        ({"queue": "nowhere"}, "not declared"),
        ({"priority": 10**6}, "priority must be"),
        ({"max_attempts": 0}, "max_attempts must be"),
        ({"tenant": None}, "tenant must be"),
        ({"expect_success_within": 60}, "expect_success_within must be"),
        ({"expect": ["rows"]}, "expect must be a dict"),
        ({"expect": {"rows": 5}}, "must be at_least"),
        ({"expect": {"rows": {"at_leats": 1}}}, "written {'at_least': 1}"),
        ({"expect": {"rows": {"at_least": "1"}}}, "takes a finite number"),
        ({"type": None}, "type must be a handler made by @job"),
        ({"type": len}, "type must be a handler made by @job"),
        ({"payload": ["x"]}, "payload must be a dict"),
    ],
    ids=str,
)
def test_a_refusal_names_the_schedule_and_the_reason(options, reason):
    with pytest.raises(InvalidSchedule, match=f"Schedule 'digest': .*{reason}"):
        spec(**options)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 5])
def test_a_name_is_printable_and_not_long(name):
    with pytest.raises(InvalidSchedule, match="a name is 1 to 200"):
        make_spec(name, "operations.note", None, {"cron": "0 8 * * *"})


def test_an_import_path_is_no_type():
    with pytest.raises(UnknownJobType):
        spec(type="tests.operations.handlers.note").columns()


@pytest.mark.parametrize("payload", [{"txt": "x"}, {"text": 5}])
def test_the_payload_is_validated_by_the_signature(payload):
    with pytest.raises(InvalidPayload):
        spec(payload=payload).columns()


def test_the_payload_holds_python_values_and_is_stored_as_json():
    at, number = datetime(2026, 5, 1, tzinfo=UTC), UUID(int=7)
    columns = spec(type="operations.order", payload={"id": number, "at": at, "lines": []}).columns()
    assert columns["payload"] == {"id": str(number), "at": "2026-05-01T00:00:00+00:00", "lines": []}
    with pytest.raises(InvalidPayload):
        spec(type="operations.order", payload={"id": number, "at": date(2026, 5, 1), "lines": []}).columns()


def test_an_expression_is_stored_in_its_five_fields():
    assert spec(cron=" @daily ").cron == "0 0 * * *"


def test_without_a_zone_it_is_the_projects():
    with override_settings(TIME_ZONE="Europe/Moscow"):
        assert spec().timezone == "Europe/Moscow"


def test_the_same_words_have_the_same_fingerprint_and_others_another():
    assert spec(cron="@daily").fingerprint() == spec(cron="0 0 * * *").fingerprint()
    assert spec(jitter=timedelta(1)).fingerprint() != spec().fingerprint()
    assert spec(payload={"text": "x"}).fingerprint() != spec().fingerprint()
