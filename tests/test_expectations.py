"""What reported numbers should be like: refused when wrong, exact at the edges."""

import math

import pytest

from django_jobs.exceptions import ConfigurationError
from django_jobs.expectations import at_least, faults, near_usual, parse_expectations, usual_of


@pytest.mark.parametrize("wrong", [None, "1", True, math.nan, math.inf, 10**400])
@pytest.mark.parametrize("make", [at_least, near_usual])
def test_a_wrong_number_is_refused_with_an_example(make, wrong):
    with pytest.raises(ConfigurationError, match=rf"such as {make.__name__}\("):
        make(wrong)


@pytest.mark.parametrize("wrong", [0, -0.5])
def test_a_share_is_above_zero(wrong):
    with pytest.raises(ConfigurationError, match="above zero"):
        near_usual(wrong)


@pytest.mark.parametrize(
    ("value", "usual", "fault"),
    [
        (50, 100, ""),
        (150, 100, ""),
        (49.9, 100, "is 49.9, not within 50% of the usual 100"),
        (151, 100, "is 151, not within 50% of the usual 100"),
        (-49, -100, "is -49, not within 50% of the usual -100"),
        (0, 0, ""),
        (1, 0, "is 1, not within 50% of the usual 0"),
        (5, None, ""),
    ],
)
def test_near_usual_is_a_share_above_and_below(value, usual, fault):
    assert near_usual(0.5).fault(value, usual) == fault


def test_at_least_is_met_by_the_minimum():
    assert at_least(1).fault(1, None) == ""
    assert at_least(1).fault(0, None) == "is 0, below 1"


def test_a_number_that_was_not_reported_or_is_none_is_unexpected():
    expected = {"rows": at_least(1), "cents": at_least(0), "fine": at_least(0)}
    assert faults(expected, {"cents": "12", "fine": 0}, None) == {
        "rows": "was not reported",
        "cents": "is '12', no number",
    }
    assert faults(expected, None, None)["rows"] == "was not reported"


def test_the_stored_form_says_the_same():
    expected = {"rows": at_least(1), "cents": near_usual(0.25)}
    stored = {name: expectation.as_json() for name, expectation in expected.items()}
    assert stored == {"rows": {"at_least": 1}, "cents": {"near_usual": 0.25}}
    assert parse_expectations(stored) == parse_expectations(expected) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        {"rows": 1},
        {"rows": {"at_most": 1}},
        {"rows": {"at_least": "1"}},
        {"rows": {"at_least": 1, "near_usual": 1}},
        {"": {"at_least": 1}},
        {"x" * 201: {"at_least": 1}},
        {"a\x00": {"at_least": 1}},
        {5: {"at_least": 1}},
    ],
    ids=repr,
)
def test_another_stored_form_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        parse_expectations(wrong)


def test_the_usual_value_is_a_median_that_one_strange_run_does_not_move():
    assert usual_of([{"rows": 100}] * 4 + [{"rows": 10**9}] + [{"rows": 90}]) == {"rows": 100}


def test_nothing_is_usual_before_five_runs_reported_it():
    assert usual_of([{"rows": 1, "note": "x", "nan": math.nan}] * 4) == {}
    assert usual_of([{"rows": 1, "note": "x", "nan": math.nan}] * 5) == {"rows": 1}


def test_a_number_that_no_float_holds_is_no_number():
    assert faults({"rows": at_least(1)}, {"rows": 10**400}, None)["rows"].endswith("no number")
    assert usual_of([{"rows": 10**400}] * 5) == {}
