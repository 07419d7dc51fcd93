"""The register of job types."""

import functools

import pytest

from django_jobs.exceptions import ConfigurationError, UnknownJobType
from django_jobs.payload import Signature
from django_jobs.policy import JobType
from django_jobs.registry import Registry, registry
from django_jobs.worker.running import RunningJob


def send(user_id: int): ...


def other(user_id: int): ...


def job_type(name, handler=send, **policy):
    return JobType(name=name, handler=handler, signature=Signature.of(handler, run_type=RunningJob), **policy)


@pytest.fixture
def register():
    return Registry()


def test_a_registered_type_is_found_by_its_name(register):
    made = job_type("send")
    register.register(made)
    assert register.get("send") is register.find("send") is made
    assert list(register) == [made]


def test_an_alias_finds_the_type_and_does_not_count_twice(register):
    made = job_type("send", aliases=("send_v1", "send_v2"))
    register.register(made)
    assert register.get("send_v1") is register.get("send_v2") is made
    assert list(register) == [made]
    assert register.names() == ["send", "send_v1", "send_v2"]


@pytest.mark.parametrize(
    "second",
    [
        lambda: job_type("send", other),
        lambda: job_type("old", other),
        lambda: job_type("new", other, aliases=("send",)),
        lambda: job_type("new", other, aliases=("old",)),
    ],
    ids=["name on name", "name on alias", "alias on name", "alias on alias"],
)
def test_two_handlers_of_one_name_are_refused_and_the_first_stays(register, second):
    first = job_type("send", aliases=("old",))
    register.register(first)
    with pytest.raises(ConfigurationError, match=r"as '(send|old)': tests.test_registry.send and .*other\. Rename"):
        register.register(second())
    assert register.get("send") is register.get("old") is first
    assert register.find("new") is None


def test_the_same_function_may_register_again(register):
    register.register(job_type("send"))
    again = job_type("send", priority=5)
    register.register(again)
    assert register.get("send") is again


def test_a_partial_may_be_a_handler(register):
    register.register(job_type("send", functools.partial(send)))
    assert register.get("send").handler.func is send


def test_an_unknown_name_names_the_nearest(register):
    register.register(job_type("send_invoice", aliases=("send_bill",)))
    with pytest.raises(UnknownJobType, match=r"as 'send_invoise'\. Did you mean 'send_invoice'\? .*INSTALLED_APPS"):
        register.get("send_invoise")
    with pytest.raises(UnknownJobType, match="Did you mean 'send_bill'"):
        register.get("send_bil")
    with pytest.raises(UnknownJobType, match=r"as 'x'\. Handlers are found in"):
        register.get("x")
    assert register.find("x") is None


@pytest.mark.parametrize("name", [None, 5, [], send], ids=["None", "5", "list", "function"])
def test_what_is_no_name_is_unknown(register, name):
    with pytest.raises(UnknownJobType):
        register.get(name)


def test_the_jobs_of_each_installed_app_are_found():
    assert all(name == name.strip() for found in registry for name in (found.name, *found.aliases))
