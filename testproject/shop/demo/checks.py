"""Whether what was asked for is what happened. Each check says in its docstring what holds if it is silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .evidence import Evidence
from .story import Scene, Story

Problems = Iterator[str]
Examination = Callable[[Story, Evidence], Problems]

CHECKS: list[Examination] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``claim``: what the check says. ``problems``: where it does not hold."""

    claim: str
    problems: list[str]


def check(examination: Examination) -> Examination:
    CHECKS.append(examination)
    return examination


def verdicts(story: Story, evidence: Evidence) -> Iterator[Verdict]:
    for examination in CHECKS:
        yield Verdict(claim=examination.__doc__ or "", problems=list(examination(story, evidence)))


def differences(what: str, expected: Iterable[str], found: Iterable[str]) -> Problems:
    """Each thing that is missing, too many, or should not be there at all."""
    wanted, present = Counter(expected), Counter(found)
    for name in sorted(wanted | present):
        if wanted[name] != present[name]:
            yield f"{what} {name}: {wanted[name]} expected, {present[name]} found"


def unequal(what: str, expected: Mapping[str, object], found: Mapping[str, object]) -> Problems:
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"{what} {name}: {expected.get(name)!r} expected, {found.get(name)!r} found"


def attempts_needed(story: Story, evidence: Evidence) -> dict[str, int]:
    """How many runs each job needed, given what went wrong around it."""
    needed = {job.id: 1 for job in story.jobs()}
    sent = Counter(request.key for request in evidence.requests)
    for scene in story.placed:
        for job in scene.jobs:
            needed[job.id] = max(_attempts(scene, job.type), needed[job.id])
    for record in evidence.of_type("shop.deliver_webhook"):
        needed[record.id] = sent[_key(record.result)] if record.result else 1
    return needed
