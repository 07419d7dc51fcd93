"""Retrying or discarding many dead jobs: asked for here in one quick transaction, done by maintenance in batches.

Guarantees: each dead job is moved at most once, whoever clicks, runs or crashes meanwhile; jobs that die after the
request are not touched, not even those it retried; aborting stops before the next batch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from django_jobs.conf import get_settings
from django_jobs.exceptions import BulkNotFound, InvalidOption
from django_jobs.ids import uuid7
from django_jobs.models import BulkKind, BulkOperation, BulkState, DeadJob
from django_jobs.policy import is_int

from .audit import Actor, audit
from .dead_count import count_dead
from .dead_filter import DeadFilter
from .lookup import statuses_of
from .options import check_duration

LARGEST_CANARY = 100

Kind = Literal["retry", "discard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkInfo:
    """``state``: running, canary (somebody has to confirm the rest), done or aborted. ``total`` is None until the first
    batch has counted. ``skipped``: jobs that were locked, or no longer dead when their turn came. ``error``: why the
    last batch failed, if it did; it is tried again.
    """

    id: UUID
    kind: str
    filter: DeadFilter
    state: str
    requested_by: str
    spread: timedelta | None
    canary: int
    canary_ids: tuple[UUID, ...]
    total: int | None
    done: int
    skipped: int
    created_at: datetime
    finished_at: datetime | None
    error: str

    @property
    def is_over(self) -> bool:
        return self.state in (BulkState.DONE, BulkState.ABORTED)

    @property
    def fraction(self) -> float:
        """From 0 to 1."""
        if self.state == BulkState.DONE:
            return 1.0
        return min((self.done + self.skipped) / self.total, 1.0) if self.total else 0.0

    def canary_statuses(self) -> dict[str, int]:
        """How many of the first few jobs are in which public status by now."""
        return dict(Counter(statuses_of(self.canary_ids).values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What a bulk operation would do. ``count``: how many jobs are meant now; None where counting takes too long."""

    kind: str
    filter: DeadFilter
    count: int | None
    spread: timedelta | None
    canary: int

    def __str__(self) -> str:
        verb = "retried" if self.kind == BulkKind.RETRY else "discarded"
        number = "an unknown number of jobs" if self.count is None else f"{self.count:,} job{'s' * (self.count != 1)}"
        first = f", {self.canary} first and the rest when confirmed" if self.canary else ""
        over = f", spread over {self.spread}" if self.spread else ""
        return f"{number} will be {verb}{first}{over}: {self.filter}"


def preview_bulk(kind: Kind, filter: DeadFilter, *, spread: timedelta | None = None, canary: int = 0) -> BulkPreview:
    """What ``start_bulk`` with these arguments would do; changes nothing. Raises InvalidOption."""
    _check(kind, spread, canary)
    return BulkPreview(kind=kind, filter=filter, count=count_dead(filter), spread=spread or None, canary=canary)


def start_bulk(
    kind: Kind,
    filter: DeadFilter,
    *,
    actor: Actor,
    spread: timedelta | None = None,
    canary: int = 0,
    id: UUID | None = None,
) -> BulkInfo:
    """Ask maintenance to retry or discard what ``filter`` means now.

    ``spread``: not at once but evenly over this time. ``canary``: so many first (retry only); the rest waits for
    ``confirm_bulk``. ``id``: of your choosing, such as a form's, so that asking twice is asking once.
    Raises InvalidOption.
    """
    _check(kind, spread, canary)
    wanted = {"kind": kind, "filter": filter.as_json(), "spread": spread or None, "canary": canary}
    key = id or uuid7()
    try:
        with transaction.atomic(using=get_settings().database):
            _insert(key, actor, wanted)
    except IntegrityError:
        earlier = _operation(key).get()
        if any(getattr(earlier, name) != value for name, value in wanted.items()):
            told = {"id": key, "earlier": earlier}
            raise InvalidOption(
                _("The id %(id)s was used for another request (%(earlier)s). Take a new one.") % told
            ) from None
    return get_bulk(key)


def _insert(key: UUID, actor: Actor, wanted: dict[str, Any]) -> None:
    alias = get_settings().database
    newest = DeadJob.objects.using(alias).order_by("-failed_at", "-id").values_list("failed_at", flat=True).first()
    BulkOperation.objects.using(alias).create(
        id=key,
        requested_by=actor.name,
        actor_id=actor.id,
        source=actor.source,
        snapshot_at=newest or Now(),
        **wanted,
    )
    terms = {"filter": wanted["filter"], "spread": str(wanted["spread"] or ""), "canary": wanted["canary"]}
    audit(actor, f"bulk_{wanted['kind']}_requested", "bulk_operation", key, count=0, after=terms)


def get_bulk(id: UUID) -> BulkInfo:
    """Raises BulkNotFound."""
    return bulk_info(_found(id, _operation(id).first()))


def confirm_bulk(id: UUID, *, actor: Actor) -> bool:
    """Go on with the rest after the canary. False if it does not wait for that. Raises BulkNotFound."""
    return _change_state(id, actor, "confirmed", {BulkState.CANARY}, BulkState.RUNNING)


def abort_bulk(id: UUID, *, actor: Actor) -> bool:
    """Leave the jobs that are left as they are. False if it is over already. Raises BulkNotFound."""
    return _change_state(id, actor, "aborted", {BulkState.CANARY, BulkState.RUNNING}, BulkState.ABORTED)


def bulk_info(row: BulkOperation) -> BulkInfo:
    return BulkInfo(
        id=row.id,
        kind=row.kind,
        filter=DeadFilter.from_json(row.filter),
        state=row.state,
        requested_by=row.requested_by,
        spread=row.spread,
        canary=row.canary,
        canary_ids=tuple(map(UUID, row.canary_ids)),
        total=row.total,
        done=row.done,
        skipped=row.skipped,
        created_at=row.created_at,
        finished_at=row.finished_at,
        error=row.error,
    )


def _check(kind: str, spread: timedelta | None, canary: int) -> None:
    if kind not in BulkKind.values:
        known = ", ".join(BulkKind.values)
        raise InvalidOption(_("A bulk operation is one of %(known)s, not %(kind)r.") % {"known": known, "kind": kind})
    if spread is not None:
        check_duration("spread", spread)
    if not is_int(canary) or not 0 <= canary <= LARGEST_CANARY:
        told = {"most": LARGEST_CANARY, "canary": canary}
        raise InvalidOption(_("canary must be a whole number from 0 to %(most)d, not %(canary)r.") % told)
    if canary and kind != BulkKind.RETRY:
        raise InvalidOption(_("Only a retry can have a canary: what is discarded shows nothing."))


def _operation(id: UUID) -> QuerySet[BulkOperation]:
    return BulkOperation.objects.using(get_settings().database).filter(pk=id)


def _found(id: UUID, row: BulkOperation | None) -> BulkOperation:
    if row is None:
        raise BulkNotFound(f"There is no bulk operation {id}. Look for it among the latest ones.")
    return row


def _change_state(id: UUID, actor: Actor, word: str, before: set[BulkState], after: BulkState) -> bool:
    with transaction.atomic(using=get_settings().database):
        row = _found(id, _operation(id).select_for_update().first())
        if row.state not in before:
            return False
        finished = {"finished_at": Now()} if after == BulkState.ABORTED else {}
        _operation(id).update(state=after, **finished)
        states = {"before": {"state": row.state}, "after": {"state": after.value}}
        audit(actor, f"bulk_{row.kind}_{word}", "bulk_operation", id, count=row.done, **states)
    return True
