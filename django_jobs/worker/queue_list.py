"""Reads ``--queues urgent:5,default:40,bulk``."""

from __future__ import annotations

from django_jobs.conf import get_settings
from django_jobs.exceptions import ConfigurationError

EXAMPLE = (
    "Write --queues urgent:5,default:40,bulk: names separated by commas, each with a colon and its slots, or without."
)

Groups = list[tuple[tuple[str, ...], int]]


def parse_queues(text: str, concurrency: int | None = None) -> Groups:
    """Groups of queues with their slots. Those without a number share ``concurrency``, by default that of the settings.
    Empty text: every declared queue.

    Raises ConfigurationError or UnknownQueue.
    """
    settings = get_settings()
    shared = settings.concurrency if concurrency is None else concurrency
    if not 1 <= shared <= 1000:
        raise ConfigurationError(f"--concurrency must be 1 to 1000, not {shared}.")
    if not text.strip():
        return [(settings.queues, shared)]
    own: Groups = []
    sharing: list[str] = []
    for part in text.split(","):
        name, slots = _part(part)
        settings.declared(name)
        if name in sharing or any(name in names for names, _ in own):
            raise ConfigurationError(f"Queue {name!r} is named twice in --queues.")
        if slots is None:
            sharing.append(name)
        else:
            own.append(((name,), slots))
    if concurrency is not None and not sharing:
        raise ConfigurationError(
            f"--concurrency {concurrency} is for queues without slots of their own, but --queues gives every queue its "
            "own. Leave one of the two out."
        )
    return [*own, (tuple(sharing), shared)] if sharing else own


def _part(part: str) -> tuple[str, int | None]:
    name, colon, number = part.strip().partition(":")
    if not name:
        raise ConfigurationError(f"--queues has an empty name in {part!r}. {EXAMPLE}")
    if not colon:
        return name, None
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 1000):
        raise ConfigurationError(
            f"{part.strip()!r} in --queues: {number!r} is no number of slots from 1 to 1000. {EXAMPLE}"
        )
    return name, int(number)
