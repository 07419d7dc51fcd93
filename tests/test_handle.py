"""@job and what it returns."""

from datetime import timedelta

import pytest

from django_jobs import RetryPolicy, RunningJob, job
from django_jobs.exceptions import ConfigurationError, InvalidPayload
from django_jobs.handle import JobHandle
from django_jobs.registry import Registry


@pytest.fixture(autouse=True)
def register(monkeypatch):
    """A register of the test's own."""
    made = Registry()
    monkeypatch.setattr("django_jobs.handle.registry", made)
    return made


def test_a_decorated_function_can_be_called_as_before():
    @job("double")
    def double(number: int) -> int:
        return 2 * number

    assert isinstance(double, JobHandle)
    assert double(4) == double(number=4) == 8


def test_the_policy_is_kept(register):
    policy = RetryPolicy(base=timedelta(seconds=5))

    @job(
        "a",
        queue="urgent",
        priority=5,
        max_attempts=8,
        timeout=30,
        retry=policy,
        atomic=True,
        on_lost="bury",
        aliases=["b"],
    )
    def handler(run: RunningJob, user_id: int): ...

    made = register.get("b")
    assert made is handler.job_type
    assert (made.name, made.queue, made.priority, made.max_attempts) == ("a", "urgent", 5, 8)
    assert (made.timeout, made.retry, made.atomic, made.on_lost) == (timedelta(seconds=30), policy, True, "bury")
    assert made.signature.wants_run
    assert [field.name for field in made.signature.fields] == ["user_id"]


@pytest.mark.parametrize("timeout", [30, 30.0, timedelta(seconds=30)], ids=repr)
def test_a_timeout_is_seconds_or_a_timedelta(timeout):
    @job("a", timeout=timeout)
    def handler(): ...

    assert handler.job_type.timeout == timedelta(seconds=30)


@pytest.mark.parametrize("timeout", ["30", True, -1, 0, []], ids=repr)
def test_another_timeout_is_refused(timeout):
    with pytest.raises(ConfigurationError, match="timeout must be seconds or a timedelta above zero"):

        @job("a", timeout=timeout)
        def handler(): ...


def test_one_alias_may_be_a_string(register):
    @job("a", aliases="former")
    def handler(): ...

    assert register.find("former") is handler.job_type


def test_a_decorator_without_a_name_says_what_to_write():
    with pytest.raises(ConfigurationError, match=r'write @job\("send_invoice"\) above the handler'):

        @job
        def handler(): ...


def no_annotation(user_id): ...
def star(*ids: int): ...
def double_star(**fields: int): ...
def position_only(user_id: int, /): ...
def run_twice(run: RunningJob, again: RunningJob): ...
def run_second(user_id: int, run: RunningJob): ...
def unresolved(user: "NoSuchType"): ...  # noqa: F821
def unstorable(callback: type(len)): ...
def generator(user_id: int):
    yield


BAD = [no_annotation, star, double_star, position_only, run_twice, run_second, unresolved, unstorable, generator]


@pytest.mark.parametrize("handler", BAD, ids=lambda handler: handler.__name__)
def test_a_handler_whose_signature_cannot_be_a_payload_is_refused_at_import(register, handler):
    with pytest.raises(ConfigurationError, match=f"Handler tests.test_handle.{handler.__name__}.*(Write|Remove)"):
        job("bad")(handler)
    assert register.find("bad") is None


def test_a_field_may_be_called_self_or_like_an_option():
    @job("a")
    def handler(self: int, queue: str, payload: int): ...

    with pytest.raises(InvalidPayload, match="queue"):
        handler.enqueue(self=1, queue=5, payload=1)


def test_positional_payload_is_refused_by_python():
    @job("a")
    def handler(user_id: int): ...

    with pytest.raises(TypeError, match="positional"):
        handler.enqueue(5)


def test_a_missing_field_is_named():
    @job("a")
    def handler(user_id: int, note: str = ""): ...

    with pytest.raises(InvalidPayload, match="user_id"):
        handler.enqueue(note="a")
