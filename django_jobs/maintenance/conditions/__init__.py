"""What the watcher looks for. A condition is called with a View and yields a Finding for each subject it holds for.

Each runs a bounded number of queries, each of which an index or a small table answers.
"""

from __future__ import annotations

from django_jobs.conf import CONDITIONS

from .dead import dead_rate, lost_leases, new_dead_group
from .finding import Condition, Finding, View
from .queues import QueueTrend, oldest_job, unserved_queue
from .server import dead_tuples, missing_partition, old_transaction
from .success import broken_schedule, overdue_success, unexpected_metrics

__all__ = ["Condition", "Finding", "View", "all_conditions"]


def all_conditions() -> dict[str, Condition]:
    """By name, in the order of CONDITIONS."""
    found: tuple[Condition, ...] = (
        overdue_success,
        unexpected_metrics,
        broken_schedule,
        new_dead_group,
        dead_rate,
        lost_leases,
        oldest_job,
        QueueTrend(),
        unserved_queue,
        old_transaction,
        dead_tuples,
        missing_partition,
    )
    return dict(zip(CONDITIONS, found, strict=True))
