"""Tells one notifier in a thread of its own, and does not wait for ever.

What hangs in Python cannot be ended, only left behind. At most MOST_HANGING threads of a notifier are; then it is told
nothing more until one of them has ended.
"""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

from django.db import connections

from django_jobs import clock

from .notifiers import AlertEvent, NotDelivered, Notifier

TELL_SECONDS = 10.0
MOST_HANGING = 3
# Longer than the longest pause before an alert is told again.
LATE_ANSWERS_COUNT_FOR = timedelta(hours=2)


class _Call(Thread):
    """``error``: what the notifier raised, whatever it was; to be read when the thread has ended."""

    def __init__(self, notifier: Notifier, event: AlertEvent) -> None:
        super().__init__(name=f"django_jobs notifier {notifier.name}", daemon=True)
        self.error: BaseException | None = None
        self._notifier = notifier
        self._event = event
        self._begun_at = clock.monotonic()

    def run(self) -> None:
        try:
            self._notifier.tell(self._event)
        except BaseException as error:  # noqa: BLE001 - a project's function may raise anything
            self.error = error
        finally:
            connections.close_all()

    def still_counts(self) -> bool:
        """It hangs, or it came back with success a while ago."""
        age = clock.monotonic() - self._begun_at
        return self.is_alive() or (self.error is None and age < LATE_ANSWERS_COUNT_FOR.total_seconds())

    def has_told(self, event: AlertEvent) -> bool:
        is_over = not self.is_alive() and self.error is None
        return is_over and (self._event.id, self._event.kind) == (event.id, event.kind)


class Teller:
    """To be used by one thread."""

    def __init__(self, notifier: Notifier) -> None:
        self.name = notifier.name
        self._notifier = notifier
        self._late: list[_Call] = []

    def tell(self, event: AlertEvent) -> BaseException | None:
        """None if the notifier was told, now or by an earlier call that came back late; else why not."""
        self._late = [call for call in self._late if call.still_counts()]
        if any(call.has_told(event) for call in self._late):
            return None
        if sum(call.is_alive() for call in self._late) >= MOST_HANGING:
            return NotDelivered(f"{MOST_HANGING} earlier calls have not come back")
        call = _Call(self._notifier, event)
        call.start()
        call.join(TELL_SECONDS)
        if call.is_alive():
            self._late.append(call)
            return NotDelivered(f"it has not come back within {TELL_SECONDS:g} s")
        return call.error
