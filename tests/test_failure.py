from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobs.failure import MESSAGE_BYTES, TRACEBACK_BYTES, Failure


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no")

    __repr__ = __str__


class Leaving(Exception):
    def __str__(self):
        raise SystemExit


class Nameless(type):
    def __getattribute__(cls, name):
        raise RuntimeError


class HostileCause(Exception):
    @property
    def __cause__(self):
        raise RuntimeError


def raised(error, cause=None):
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def own_cause():
    error = Exception("own cause")
    error.__cause__ = error
    return error


def chain(count):
    error = Exception("first")
    for number in range(count):
        following = Exception(str(number))
        following.__cause__ = error
        error = following
    return error


def nested_groups(depth):
    error = ValueError("innermost")
    for _ in range(depth):
        error = ExceptionGroup("group", [error])
    return error


def too_deep():
    def again(number):
        return again(number + 1)

    try:
        again(0)
    except RecursionError as error:
        return error


def group(members):
    return ExceptionGroup("group", members)


HOSTILE = {
    "20 MB message": lambda: raised(Exception("x" * 20_000_000)),
    "20 MB of surrogates": lambda: raised(Exception("\ud800" * 20_000_000)),
    "NUL": lambda: Exception("a\0b"),
    "unprintable": Unprintable,
    "leaving": Leaving,
    "hostile cause": HostileCause,
    "own cause": own_cause,
    "100,000 causes": lambda: chain(100_000),
    "10,000 members": lambda: group([ValueError(number) for number in range(10_000)]),
    "10,000 members of 20 MB": lambda: group([ValueError("y" * 20_000_000)] * 10_000),
    "5,000 nested groups": lambda: nested_groups(5_000),
    "wide nested groups": lambda: group([group([group([chain(50)] * 50)] * 50)] * 50),
    "recursion": too_deep,
    "nameless": lambda: Nameless("Odd", (Exception,), {})("x"),
    "keyboard": KeyboardInterrupt,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_any_exception_is_captured_within_a_second_and_within_its_bounds(make):
    error = make()
    started = thread_time()
    failure = Failure.capture(error)
    assert thread_time() - started < 1, "seconds of the processor"
    assert len(failure.message.encode()) <= MESSAGE_BYTES
    assert len(failure.traceback.encode()) <= TRACEBACK_BYTES
    assert "\0" not in failure.message + failure.traceback
    assert failure.error_type


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_any_message_can_be_stored(message):
    failure = Failure.capture(Exception(message))
    assert "\0" not in failure.message + failure.traceback
    assert len(failure.message.encode()) <= MESSAGE_BYTES


def test_a_builtin_is_named_without_module():
    assert Failure.capture(ValueError("x")).error_type == "ValueError"


def test_any_other_type_is_named_with_module_and_qualified_name():
    class Local(Exception):
        pass

    assert Failure.capture(Unprintable()).error_type == f"{__name__}.Unprintable"
    assert Failure.capture(Local()).error_type.endswith(".<locals>.Local")


def test_the_traceback_shows_where_it_was_raised_and_what_caused_it():
    failure = Failure.capture(raised(ValueError("second"), cause=raised(KeyError("first"))))
    assert failure.traceback.index("KeyError: 'first'") < failure.traceback.index("direct cause")
    assert failure.traceback.index("direct cause") < failure.traceback.index("ValueError: second")
    assert "in raised" in failure.traceback


def test_an_exception_during_another_one_shows_both():
    traceback = Failure.capture(during(KeyError("first"), ValueError("second"))).traceback
    assert "During handling of the above exception" in traceback
    assert "KeyError: 'first'" in traceback


def test_a_suppressed_context_is_not_shown():
    error = during(KeyError("first"), ValueError("second"))
    error.__suppress_context__ = True
    assert "first" not in Failure.capture(error).traceback


def during(first, second):
    try:
        raise first
    except Exception:
        try:
            raise second
        except Exception as error:
            return error


def test_a_group_shows_some_members_and_counts_the_rest():
    traceback = Failure.capture(group([ValueError(f"number {number}") for number in range(20)])).traceback
    assert "  | ValueError: number 0\n" in traceback
    assert "and 12 more" in traceback
    assert "number 19" not in traceback


def test_notes_are_shown():
    error = ValueError("x")
    error.add_note("while sending invoice")
    assert "while sending invoice" in Failure.capture(error).traceback


def test_a_deep_recursion_keeps_its_first_and_last_frames():
    traceback = Failure.capture(too_deep()).traceback
    assert "in too_deep" in traceback
    assert "frames left out" in traceback
    assert traceback.rstrip().splitlines()[-1].startswith("RecursionError: ")


def test_an_unprintable_exception_says_so():
    assert "__str__ raised ValueError" in Failure.capture(Unprintable()).message


def test_a_failure_without_exception_has_no_traceback():
    failure = Failure.of("django_jobs.WorkerLost", "the worker\0 died")
    assert failure == Failure(error_type="django_jobs.WorkerLost", message="the worker␀ died", traceback="")


@pytest.mark.parametrize(
    ("message", "summary"),
    [("first\nsecond", "first"), ("\n  \n third ", "third"), ("", "ValueError"), ("x" * 500, "x" * 200)],
    ids=["lines", "blank lines", "nothing", "long"],
)
def test_the_summary_is_the_first_line_that_says_something(message, summary):
    assert Failure.of("ValueError", message).summary == summary


def test_a_summary_cannot_steer_a_terminal_or_forge_a_line_of_the_log():
    summary = Failure.of("ValueError", "no \x1b[31mred\x9b2J\u2028status=succeeded").summary
    assert summary == "no \\x1b[31mred\\x9b2J"
