"""The setting DJANGO_JOBS: read lazily, validated whole, frozen."""

from datetime import timedelta

import pytest
from django.test import override_settings
from pydantic import ValidationError

from django_jobs.conf import Settings, get_settings
from django_jobs.exceptions import ConfigurationError, UnknownQueue
from django_jobs.retry import RetryPolicy


def settings_of(**values):
    with override_settings(DJANGO_JOBS=values):
        return get_settings()


def fault_of(**values):
    with pytest.raises(ConfigurationError) as caught:
        settings_of(**values)
    return str(caught.value)


def test_every_key_is_described():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_every_key_has_a_default_so_that_no_setting_is_needed(settings):
    del settings.DJANGO_JOBS
    get_settings.cache_clear()  # deleting a setting sends no signal
    found = get_settings()
    assert (found.database, found.queues, found.first_queue) == ("default", ("default",), "default")
    assert found.renewal_pause == timedelta(seconds=20)


def test_an_empty_setting_is_the_default():
    assert settings_of() == Settings()


def test_the_settings_are_read_once_until_they_change(settings):
    settings.DJANGO_JOBS = {"CONCURRENCY": 3}
    assert get_settings() is get_settings()
    assert get_settings().concurrency == 3
    settings.DJANGO_JOBS = {"CONCURRENCY": 4}
    assert get_settings().concurrency == 4


def test_another_setting_does_not_clear_them(settings):
    before = get_settings()
    settings.TIME_ZONE = "Asia/Kolkata"
    assert get_settings() is before


def test_they_are_frozen():
    with pytest.raises(ValidationError):
        get_settings().concurrency = 5


def test_durations_are_seconds_or_timedeltas():
    found = settings_of(LEASE=90, POLL_EVERY=0.5, IDEMPOTENCY_RETENTION=timedelta(days=3), TIMEOUT=None)
    assert (found.lease, found.poll_every) == (timedelta(seconds=90), timedelta(seconds=0.5))
    assert (found.idempotency_retention, found.timeout) == (timedelta(days=3), None)


def test_the_retry_policy_may_be_a_dict_with_seconds():
    policy = RetryPolicy(base=timedelta(seconds=5), cap=timedelta(hours=2))
    assert settings_of(RETRY={"base": 5, "cap": timedelta(hours=2)}).retry == policy
    assert settings_of(RETRY=policy).retry == policy
    assert settings_of().retry == RetryPolicy()


def test_lists_and_tuples_declare_queues():
    assert settings_of(QUEUES=["a", "b"]).queues == settings_of(QUEUES=("a", "b")).queues == ("a", "b")


def test_the_default_queue_is_named_or_the_first():
    assert settings_of(QUEUES=["a", "b"]).first_queue == "a"
    assert settings_of(QUEUES=["a", "b"], DEFAULT_QUEUE="b").first_queue == "b"


def test_the_renewal_pause_is_named_or_a_third_of_the_lease():
    assert settings_of(LEASE=30).renewal_pause == timedelta(seconds=10)
    assert settings_of(LEASE=30, RENEW_EVERY=5).renewal_pause == timedelta(seconds=5)


def test_a_declared_queue_is_returned_and_another_one_names_the_nearest():
    found = settings_of(QUEUES=["default", "urgent"])
    assert found.declared("urgent") == "urgent"
    with pytest.raises(UnknownQueue, match=r"'urgend' is not declared\. Did you mean 'urgent'\? Declared: default, ur"):
        found.declared("urgend")
    with pytest.raises(UnknownQueue, match=r"'x' is not declared\. Declared: default, urgent\. Add it to"):
        found.declared("x")


FAULTS = [
    ({"QEUES": ["a"]}, r"unknown key 'QEUES'\. Did you mean 'QUEUES'\? Known: DATABASE, QUEUES"),
    ({"queues": ["a"]}, r"unknown key 'queues'\. Did you mean 'QUEUES'\?"),
    ({"X": 1}, r"unknown key 'X'\. Known: "),
    ({"QUEUES": []}, "QUEUES: declare at least one queue"),
    ({"QUEUES": "default"}, "QUEUES: "),
    ({"QUEUES": ["a", "a"]}, "QUEUES: a queue is declared twice"),
    ({"QUEUES": ["a,b"]}, "QUEUES: 'a,b' is no queue name: 1 to 200 printable characters, no comma, no colon"),
    ({"QUEUES": ["a:5"]}, "is no queue name"),
    ({"QUEUES": [" a"]}, "is no queue name"),
    ({"QUEUES": [""]}, "is no queue name"),
    ({"QUEUES": ["a\n"]}, "is no queue name"),
    ({"QUEUES": ["a" * 201]}, "is no queue name"),
    ({"DEFAULT_QUEUE": "b"}, "DEFAULT_QUEUE 'b' is not one of QUEUES"),
    ({"CONCURRENCY": 0}, "CONCURRENCY: "),
    ({"CONCURRENCY": "many"}, "CONCURRENCY: "),
    ({"MAX_ATTEMPTS": 0}, "MAX_ATTEMPTS: "),
    ({"MAX_PAYLOAD_BYTES": 10}, "MAX_PAYLOAD_BYTES: "),
    ({"LEASE": 0.5}, "LEASE must be at least 1 second"),
    ({"LEASE": "soon"}, "LEASE: "),
    (
        {"LEASE": 30, "RENEW_EVERY": 11},
        r"RENEW_EVERY \(0:00:11\) .* a third of LEASE \(0:00:30\).*raise LEASE",
    ),
    ({"RENEW_EVERY": 0}, "RENEW_EVERY .* must be above zero"),
    ({"STAGE_EVERY": 20, "RESCUE_EVERY": 30}, "at most a sixth of LEASE"),
    ({"POLL_EVERY": 0}, "POLL_EVERY must be above zero"),
    ({"STAGE_EVERY": -1}, "STAGE_EVERY must be above zero"),
    ({"RESCUE_EVERY": 0}, "RESCUE_EVERY must be above zero"),
    ({"TIMEOUT": 0}, "TIMEOUT must be above zero"),
    ({"SHUTDOWN_TIMEOUT": -1}, "SHUTDOWN_TIMEOUT must be zero or more"),
    ({"IDEMPOTENCY_RETENTION": -1}, "IDEMPOTENCY_RETENTION must be zero or more"),
    ({"TIMEOUT_GRACE": -1}, "TIMEOUT_GRACE must be zero or more"),
    ({"UNKNOWN_PATIENCE": -1}, "UNKNOWN_PATIENCE must be zero or more"),
    ({"RETRY": {"bsae": 1}}, r"RETRY: unknown keys \['bsae'\]; known are base, cap and floor"),
    ({"RETRY": {"base": 10, "cap": 5}}, "RetryPolicy: base 0:00:10 is above cap 0:00:05"),
    ({"RETRY": 5}, "RETRY: "),
]


@pytest.mark.parametrize(("values", "reason"), FAULTS, ids=[f"{n} {min(row[0])}" for n, row in enumerate(FAULTS)])
def test_a_wrong_value_is_named(values, reason):
    with pytest.raises(ConfigurationError, match=f"DJANGO_JOBS is wrong: .*{reason}"):
        settings_of(**values)


def test_all_wrong_keys_are_named_at_once():
    text = fault_of(CONCURRENCY=0, MAX_ATTEMPTS=0, QEUES=[])
    assert "CONCURRENCY" in text
    assert "MAX_ATTEMPTS" in text
    assert "QEUES" in text


@pytest.mark.parametrize("value", [None, [], "default"], ids=repr)
def test_a_setting_that_is_no_dict_is_wrong(settings, value):
    settings.DJANGO_JOBS = value
    with pytest.raises(ConfigurationError, match=r"DJANGO_JOBS must be a dict, not"):
        get_settings()


def test_a_value_is_not_shown_in_the_error():
    assert "hunter2" not in fault_of(CONCURRENCY="hunter2")
