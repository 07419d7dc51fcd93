"""Jobs that ended badly: a group of dead jobs nobody has seen before, too many dead, too many lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from django.db.models import Sum

from django_jobs.models import DeadGroup, JobCount, Severity

from .finding import Finding, View

NEW = timedelta(days=1)
WINDOW = timedelta(minutes=15)
FEWEST_DEAD = 5
MOST_GROUPS = 100


def new_dead_group(view: View) -> Iterator[Finding]:
    """A type and fingerprint first seen within the last day. Ends when the group is retried or discarded."""
    groups = DeadGroup.objects.using(view.alias).filter(first_seen__gt=view.now - NEW, count__gt=0)
    for group in groups.order_by("first_seen", "pk")[:MOST_GROUPS]:
        yield Finding(
            subject=f"{group.type} {group.fingerprint}",
            summary=f"New kind of dead job: {group.type}, {group.count} so far: "
            f"{group.error_type}: {group.error_summary}",
            details={
                "type": group.type,
                "fingerprint": group.fingerprint,
                "first_seen": group.first_seen.isoformat(),
                "first_release": group.first_release,
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
