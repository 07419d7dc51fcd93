"""Who did it: the actor of an operation, and the entry that is written in the operation's own transaction."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from django_jobs.conf import get_settings
from django_jobs.exceptions import InvalidOption
from django_jobs.models import AuditEntry
from django_jobs.storable import clean_json, clean_text

Source = Literal["admin", "command", "code", "api"]
LONGEST_NAME = 200
LONGEST_TARGET = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """``id`` is the key of the user's row as text, empty where there is none. ``source``: what the actor used."""

    name: str
    id: str = ""
    source: Source = "code"

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidOption("An actor needs a name: who is it that acts?")
        object.__setattr__(self, "name", clean_text(self.name, LONGEST_NAME))
        object.__setattr__(self, "id", clean_text(self.id, LONGEST_NAME))

    @classmethod
    def of_user(cls, user: Any, source: Source) -> Self:
        """``user``: an authenticated user of any user model."""
        return cls(name=user.get_username(), id=str(user.pk), source=source)

    @classmethod
    def of_command(cls) -> Self:
        """The account of the operating system that runs this process."""
        try:
            return cls(name=getpass.getuser(), source="command")
        except (OSError, KeyError, ImportError):
            return cls(name="unknown", source="command")


def audit(
    actor: Actor | None,
    action: str,
    kind: str,
    target: object = "",
    *,
    count: int = 1,
    before: Any = None,
    after: Any = None,
) -> None:
    """Write an entry, unless nobody is named. Call it in the transaction of the change."""
    audit_each(actor, action, kind, [target], count=count, before=before, after=after)


def audit_each(
    actor: Actor | None,
    action: str,
    kind: str,
    targets: Iterable[object],
    *,
    count: int = 1,
    before: Any = None,
    after: Any = None,
) -> None:
    """Write an entry for each target, unless nobody is named."""
    if actor is None:
        return
    entries = (
        AuditEntry(
            actor=actor.name,
            actor_id=actor.id,
            source=actor.source,
            action=action,
            target_kind=kind,
            target_id=clean_text(str(target), LONGEST_TARGET),
            count=count,
            before=clean_json(before),
            after=clean_json(after),
        )
        for target in targets
    )
    AuditEntry.objects.using(get_settings().database).bulk_create(entries)
