"""When the loop may sleep, and how it is woken without losing a wake-up.

Awake, a loop that finds nothing polls a few times more, so that a busy system never sends a notification.
Then it lies down:

1. It takes a shared lock for each of its queues on its own session. From now on every enqueuer's probe sees a
   sleeper and wakes one after its commit.
2. It takes a transaction id of its own, ends that transaction, takes a snapshot and claims once more.
3. While a transaction that the snapshot lists as unfinished goes on, it settles: it looks and claims again at
   growing pauses.
4. Then it sleeps until a notification, with the safety poll as the net.

No job is missed: an enqueuer that probed before the lock had its own transaction id by then, below the
sleeper's. So at the snapshot it had either ended, and the claim sees its job, or it is in the list, and a
claim follows its end. The sleeper's own id matters: without it, an id just given out can lie above the
snapshot's end and be in no list.

Where notifications do not arrive (a transaction pooler, ``LISTEN`` off) the loop polls, and says so once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from enum import Enum

from django_jobs import clock
from django_jobs.engines.protocol import Session
from django_jobs.logs import get_logger

logger = get_logger("django_jobs.worker")

LINGER = (0.005, 0.010, 0.020)
WAKE_NEXT_SECONDS = 0.1
FIRST_SETTLE, SETTLE_GROWTH, LAST_SETTLE = 0.010, 1.5, 1.0


class Posture(Enum):
    AWAKE = "awake"
    SETTLING = "settling"
    ASLEEP = "asleep"


class Sleeper:
    """Asked by the loop before and after each claim. Every method may raise EngineUnavailable; call ``forget`` then."""

    def __init__(self, session: Session, poll: timedelta, poll_unproven: timedelta) -> None:
        self._session = session
        self._poll = poll.total_seconds()
        self._poll_unproven = poll_unproven.total_seconds()
        self._complained = False
        self._next_wake: dict[str, float] = {}
        self._generation = 0
        self.forget()

    def forget(self) -> None:
        """The connection is gone, and with it locks and channel."""
        self._proven: bool | None = None
        self._refused = 0
        self._posture = Posture.AWAKE
        self._lingered = 0
        self._queues: tuple[str, ...] = ()
        self._writers: frozenset[int] = frozenset()
        self._settle_pause = FIRST_SETTLE

    @property
    def posture(self) -> Posture:
        return self._posture

    @property
    def seen_on(self) -> tuple[str, ...]:
        """The queues whose enqueuers take this process for a sleeper."""
        return () if self._posture is Posture.AWAKE else self._queues

    def before_claim(self) -> None:
        """Writers that ended by now are seen by the claim that follows, so they need not be waited for any longer."""
        if self._session.generation != self._generation:
            self.forget()
        if self._proven is None:
            self._prove()
        self._generation = self._session.generation
        if self._posture is Posture.SETTLING:
            self._writers &= self._session.unfinished_writers()

    def after_claim(self, *, found: bool, queues: Sequence[str]) -> float:
        """How many seconds the loop may wait for an event. ``queues``: those with a free slot, all claimed from
        and empty.
        """
        if found:
            self._lingered = 0
        if self._posture is Posture.AWAKE or tuple(queues) != self._queues:
            self.get_up()
        if not queues:
            return self._poll
        match self._posture:
            case Posture.AWAKE:
                return self._linger(tuple(queues))
            case Posture.SETTLING:
                return self._settle()
            case Posture.ASLEEP:
                return self._poll

    def get_up(self) -> None:
        """From here on whoever enqueues looks for another sleeper."""
        self._wake_up()
        self._session.get_up()

    def notified(self, free: Collection[str]) -> bool:
        """Has a notification come? Then get up right before the claim that answers it. Where it was meant for a queue
        that is not among ``free``, and will not be claimed from, another sleeper is woken.
        """
        if not self._session.take_notification():
            return False
        seen_on = self.seen_on
        if self._posture is not Posture.AWAKE:
            self._wake_up()
            self._session.get_up_with_claim()
        self._pass_on(queue for queue in seen_on if queue not in free)
        return True

    def wake_another(self, queue: str) -> None:
        """Another process than this one, and of each queue not more often than WAKE_NEXT_SECONDS."""
        self.get_up()
        if clock.monotonic() >= self._next_wake.get(queue, 0.0):
            self._next_wake[queue] = clock.monotonic() + WAKE_NEXT_SECONDS
            self._session.wake(queue)

    def leave(self) -> None:
        """No enqueuer counts on this process from here on; who did a moment ago is answered by another."""
        seen_on = self.seen_on
        self.get_up()
        self._pass_on(seen_on)

    def _pass_on(self, queues: Iterable[str]) -> None:
        for queue in queues:
            self._session.wake(queue)

    def _wake_up(self) -> None:
        if self._posture is not Posture.AWAKE:
            self._posture = Posture.AWAKE
            self._lingered = 0

    def _prove(self) -> None:
        self._proven = self._session.can_listen()
        if not self._proven and self._session.peek_every is None and not self._complained:
            self._complained = True
            logger.warning(
                "Notifications do not arrive on this connection (LISTEN is off, or a transaction pooler is in "
                "between): polling every %g s instead.",
                self._poll_unproven,
            )

    def _linger(self, queues: tuple[str, ...]) -> float:
        if self._lingered < len(LINGER):
            self._lingered += 1
            return LINGER[self._lingered - 1]
        if not self._proven:
            return self._poll_unproven
        if not self._session.lie_down(queues):
            self._refused += 1
            return min(LINGER[-1] * float(2**self._refused), self._poll_unproven)
        self._refused = 0
        self._queues = queues
        self._writers = self._session.unfinished_writers()
        self._settle_pause = FIRST_SETTLE
        self._posture = Posture.SETTLING
        return 0.0

    def _settle(self) -> float:
        if not self._writers:
            self._posture = Posture.ASLEEP
            return self._poll
        pause = self._settle_pause
        self._settle_pause = min(pause * SETTLE_GROWTH, LAST_SETTLE)
        return pause
