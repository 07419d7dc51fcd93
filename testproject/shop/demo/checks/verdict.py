"""The list of checks, and what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from testproject.shop.demo.evidence import Evidence
from testproject.shop.demo.story import Story

Problems = Iterator[str]
Examination = Callable[[Story, Evidence], Problems]

_CHECKS: list[Examination] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``claim``: what holds unless there are ``problems``."""

    claim: str
    problems: list[str]


def check(examination: Examination) -> Examination:
    """Put the function on the list. Its docstring is the claim."""
    _CHECKS.append(examination)
    return examination


def verdicts(story: Story, evidence: Evidence) -> Iterator[Verdict]:
    for examination in _CHECKS:
        claim = (examination.__doc__ or "").strip().rstrip(".")
        yield Verdict(claim=claim, problems=list(_found(examination, story, evidence)))


def _found(examination: Examination, story: Story, evidence: Evidence) -> Problems:
    """A check that stumbles over what it finds has found something."""
    try:
        yield from examination(story, evidence)
    except (LookupError, TypeError, ValueError, OSError) as error:
        yield f"the check could not go on: {type(error).__name__}: {error}"


def differences(what: str, expected: Iterable[str], found: Iterable[str]) -> Problems:
    """Each thing that is missing, there too often, or should not be there at all."""
    wanted, present = Counter([*expected]), Counter([*found])  # not Counter(mapping), which takes it for counts
    for name in sorted(wanted | present):
        if wanted[name] != present[name]:
            yield f"{what} {name}: expected {wanted[name]}, found {present[name]}"


def unequal(what: str, expected: Mapping[str, object], found: Mapping[str, object]) -> Problems:
    """Each name that stands for something else than expected."""
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"{what} {name}: expected {expected.get(name)}, found {found.get(name)}"
