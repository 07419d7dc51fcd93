"""How many runs ended how in the last minutes, as the workers counted them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from django_jobs import clock
from django_jobs.models import JobCount

MINUTES = 60
GOOD = ("succeeded",)
BAD = ("retrying", "dead", "lost")


@dataclass(slots=True)
class Minute:
    at: datetime
    good: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """``minutes``: oldest first, the present one last. ``per_queue``: ended runs of each minute."""

    minutes: list[Minute]
    per_queue: dict[str, list[int]]

    @property
    def good(self) -> int:
        return sum(minute.good for minute in self.minutes)

    @property
    def bad(self) -> int:
        return sum(minute.bad for minute in self.minutes)

    @property
    def failure_share(self) -> float | None:
        ended = self.good + self.bad
        return self.bad / ended if ended else None


def throughput(queues: Iterable[str]) -> Throughput:
    last = clock.now().replace(second=0, microsecond=0)
    first = last - timedelta(minutes=MINUTES - 1)
    minutes = [Minute(first + timedelta(minutes=n)) for n in range(MINUTES)]
    per_queue = {queue: [0] * MINUTES for queue in queues}
    counts = JobCount.objects.filter(minute__gte=first, outcome__in=(*GOOD, *BAD)).order_by()
    for at, queue, outcome, count in counts.values_list("minute", "queue", "outcome").annotate(Sum("count")):
        n = min(int((at - first) / timedelta(minutes=1)), MINUTES - 1)
        if outcome in GOOD:
            minutes[n].good += count
        else:
            minutes[n].bad += count
        per_queue.setdefault(queue, [0] * MINUTES)[n] += count
    return Throughput(minutes=minutes, per_queue=per_queue)
