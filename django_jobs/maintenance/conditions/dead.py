"""Jobs that ended badly: a group of dead jobs nobody has seen before, too many dead, too many lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from django.db.models import Sum

from django_jobs.models import DeadJob, JobCount, Severity

from .finding import Finding, View

NEW = timedelta(days=1)
WINDOW = timedelta(minutes=15)
FEWEST_DEAD = 5
MOST_GROUPS = 100
COUNTED = 1000

# The earliest of each group, from group to group by the index on (type, fingerprint, failed_at): one descent a group.
FIRST_OF_GROUPS = """
WITH RECURSIVE earliest(id) AS (
    SELECT (SELECT id FROM {table} ORDER BY type, fingerprint, failed_at LIMIT 1)
    UNION ALL
    SELECT (SELECT n.id FROM {table} n WHERE (n.type, n.fingerprint) > (d.type, d.fingerprint)
             ORDER BY n.type, n.fingerprint, n.failed_at LIMIT 1)
      FROM earliest JOIN {table} d ON d.id = earliest.id
)
SELECT d.id, d.type, d.fingerprint, d.failed_at, d.error_type, d.error_summary
  FROM earliest JOIN {table} d ON d.id = earliest.id
 WHERE d.failed_at > %s LIMIT %s
"""


def new_dead_group(view: View) -> Iterator[Finding]:
    """A type and fingerprint whose first dead job is of the last day. Ends when the group is retried or discarded."""
    since = view.connection.ops.adapt_datetimefield_value(view.now - NEW)
    query = FIRST_OF_GROUPS.format(table=DeadJob._meta.db_table)
    for first in DeadJob.objects.using(view.alias).raw(query, [since, MOST_GROUPS]):
        group = DeadJob.objects.using(view.alias).filter(type=first.type, fingerprint=first.fingerprint)
        number = group[:COUNTED].count()
        yield Finding(
            subject=f"{first.type} {first.fingerprint}",
            summary=f"New kind of dead job: {first.type}, {number}{'+' * (number == COUNTED)} so far: "
            f"{first.error_type}: {first.error_summary}",
            details={
                "type": first.type,
                "fingerprint": first.fingerprint,
                "first_job": str(first.pk),
                "first_failed_at": first.failed_at.isoformat(),
            },
        )


def dead_rate(view: View) -> Iterator[Finding]:
    """Of the runs of a type that ended for good in the last quarter of an hour, too many were buried."""
    ended = _ended(view, "succeeded", "dead")
    for type_name, outcomes in ended.items():
        dead = outcomes.get("dead", 0)
        share = dead / (dead + outcomes.get("succeeded", 0))
        if dead >= FEWEST_DEAD and share * 100 >= view.settings.alert_dead_percent:
            yield Finding(
                subject=f"type {type_name}",
                summary=f"{dead} of {dead + outcomes.get('succeeded', 0)} jobs ({share:.0%}) died in 15 minutes.",
                details=dict(outcomes),
            )


def lost_leases(view: View) -> Iterator[Finding]:
    """Runs whose worker died, stood still or was cut off."""
    lost = {type_name: outcomes["lost"] for type_name, outcomes in _ended(view, "lost").items()}
    if (total := sum(lost.values())) >= view.settings.alert_lost_leases:
        yield Finding(
            subject="leases",
            severity=Severity.WARNING,
            summary=f"{total} runs lost their lease in 15 minutes.",
            details={"by_type": lost},
        )


def _ended(view: View, *outcomes: str) -> Mapping[str, Mapping[str, int]]:
    """By type and outcome, of the last WINDOW."""
    recent = JobCount.objects.using(view.alias).filter(minute__gte=view.now - WINDOW, outcome__in=outcomes)
    found: dict[str, dict[str, int]] = {}
    for type_name, outcome, number in recent.values_list("type", "outcome").annotate(Sum("count")).order_by("type"):
        found.setdefault(type_name, {})[outcome] = number
    return found
