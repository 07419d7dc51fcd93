"""How the demo talks: a line for each event with the seconds since the start, a table, a list of verdicts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

MARGIN = " " * 9


class Narrator:
    """Writes to ``out``, coloured if ``style`` is."""

    def __init__(self, out: OutputWrapper, style: Style) -> None:
        self._out, self._style = out, style
        self._started = time.monotonic()

    def headline(self, text: str) -> None:
        self._out.write(f"\n{self._style.MIGRATE_HEADING(text)}")

    def say(self, text: str) -> None:
        passed = f"{time.monotonic() - self._started:5.1f} s"
        self._out.write(f"{self._style.MIGRATE_LABEL(passed)}  {text}")
        self._out.flush()

    def add(self, text: str) -> None:
        self._out.write(f"{MARGIN}{text}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Numbers stand on the right; a zero is a dot."""
        cells = [[_shown(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        right = [isinstance(cell, int) for cell in rows[0]]
        self._out.write(self._style.MIGRATE_LABEL(_aligned(head, widths, right)))
        for line in cells:
            self._out.write(_aligned(line, widths, right))

    def passed(self, claim: str) -> None:
        self._out.write(f"  {self._style.SUCCESS('ok')}    {claim}.")

    def failed(self, claim: str, problems: Sequence[str]) -> None:
        self._out.write(f"  {self._style.ERROR('WRONG')} {claim}:")
        for problem in problems:
            self._out.write(f"{MARGIN}{problem}")

    def suggest(self, command: str, purpose: str) -> None:
        self._out.write(f"  {command}")
        self._out.write(f"{MARGIN}{self._style.MIGRATE_LABEL(purpose)}")

    def praise(self, text: str) -> None:
        self._out.write(f"\n{self._style.SUCCESS(text)}")


def _shown(cell: object) -> str:
    return "." if cell == 0 else str(cell)


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    columns = zip(cells, widths, right, strict=True)
    return "  " + "  ".join(f"{cell:>{width}}" if flush else f"{cell:<{width}}" for cell, width, flush in columns)
