"""What is known when a fault is over and all processes have ended. Values only: no database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LOST, TIMED_OUT = "WorkerLost", "RunTimedOut"


@dataclass(slots=True, kw_only=True)
class NotedRun:
    """As the handler noted it. ``ended_at``: None while nobody knows of an end."""

    job_id: str
    token: int
    attempt: int
    pid: int
    started_at: float
    ended_at: float | None = None

    def is_going_on_at(self, instant: float) -> bool:
        return self.started_at < instant and (self.ended_at is None or self.ended_at > instant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A process was kept from the database, or from running at all. ``until``: None if it was killed."""

    pid: int
    since: float
    until: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A job in the history or among the dead. ``result``: the token of the run whose outcome was written."""

    job_id: str
    type: str
    status: str
    attempts: int
    errors: Sequence[Mapping[str, Any]] = ()
    result: int | None = None

    @property
    def losses(self) -> list[Mapping[str, Any]]:
        return [error for error in self.errors if error["type"].endswith(LOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Jobs by their ids as texts. ``deadly``: processes that a handler ended, and when. ``sessions``: left in the
    database. ``epoch``: what the database's clock showed, in seconds since 1970, when the journal's showed zero.
    """

    lease: float
    acknowledged: frozenset[str] = frozenset()
    orders: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    ended: Sequence[Ended] = ()
    effects: Counter[str] = field(default_factory=Counter)
    atomic_effects: Counter[str] = field(default_factory=Counter)
    runs: Sequence[NotedRun] = ()
    silences: Sequence[Silence] = ()
    deadly: Mapping[int, float] = field(default_factory=dict)
    sessions: Sequence[str] = ()
    epoch: float = 0.0
