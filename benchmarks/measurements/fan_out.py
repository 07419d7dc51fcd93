"""500,000 digests spread over 10 minutes: how long the enqueueing takes, and how many arrive in each second.

``enqueue_many(…, spread=timedelta(minutes=10))``, as a scheduled handler does it with ``spread=run.jitter``.
"""

import time
from collections import Counter
from datetime import timedelta
from statistics import median

from django.db.models.functions import TruncSecond

from benchmarks.app.jobs import noop
from benchmarks.databases import Databases
from benchmarks.figures import Figure, Goal
from benchmarks.rounds import Scale
from benchmarks.tables import empty
from django_jobs.models import Job

SPREAD = timedelta(minutes=10)


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    count = scale.of(500_000, 20_000)
    empty()
    start = time.perf_counter()
    noop.enqueue_many(({"number": number} for number in range(count)), spread=SPREAD)
    seconds = time.perf_counter() - start
    arrivals = Counter(Job.objects.values_list(TruncSecond("run_at"), flat=True))
    in_order = [arrivals[second] for second in sorted(arrivals)]
    whole = in_order[1:-1]  # the first and the last second are cut
    even = count / SPREAD.total_seconds()
    near = Goal(least=0.97, most=1.03)  # jobs are whole
    return [
        Figure(what=f"{count:,} enqueued in", value=seconds, unit="s"),
        *(
            Figure(what=f"arrivals, {name}", value=value, unit="/s", against="even", compared=even, goals=(near,))
            for name, value in (("fewest", min(whole)), ("median", median(whole)), ("most", max(whole)))
        ),
        Figure(what="seconds with arrivals", value=len(in_order), unit="s"),
    ]
