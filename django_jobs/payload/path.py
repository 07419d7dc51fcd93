"""Where in a payload something is, as Python would write it: ``items[2].name``, ``prices['a b']``."""

from __future__ import annotations

from collections.abc import Iterable

_PATH_CHARACTERS = 120
_KEY_CHARACTERS = 40


def path_of(location: Iterable[int | str]) -> str:
    """The path of a pydantic location, bounded and in ASCII except for names."""
    path = "".join(_step(part) for part in location).removeprefix(".")
    return path if len(path) <= _PATH_CHARACTERS else f"{path[:_PATH_CHARACTERS]}..."


def _step(part: object) -> str:
    if isinstance(part, str) and part.isidentifier() and len(part) <= _KEY_CHARACTERS:
        return f".{part}"
    if isinstance(part, str) and part == "[key]":
        return " (the key)"
    return f"[{ascii(part)[:_KEY_CHARACTERS]}]"
