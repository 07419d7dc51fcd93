"""Rows a page at a time, without an offset and without a full count.

Guarantees: the work of a page is bounded whatever is filtered for. A page starts behind the last row of the one
before (keyset), a count stops at ``COUNTED``, and where a filter has no index, one page looks through ``SPAN`` rows
at most and says how far it came; the next page goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet

COUNTED = 10_000
SPAN = 100_000
PAGE = 50
SEPARATOR = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """``older``: the cursor of the next page, or empty. ``counted_more``: there are more than ``count``. ``continued``:
    it is not the first page.

    ``looked_back_to``: the last row looked at, where that was not the last there is.
    """

    rows: Sequence[Any]
    count: int
    counted_more: bool
    older: str
    continued: bool
    looked_back_to: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """``newest_first``: the fields that order the rows, all descending and together unique; an index must have them."""

    newest_first: tuple[str, ...] = ("id",)
    page: int = PAGE
    span: int = SPAN

    def take(self, everything: QuerySet[Any], wanted: Q, *, indexed: bool, before: str = "") -> Rows:
        """The rows of ``everything`` that are ``wanted``, from the cursor ``before`` on.

        ``indexed``: an index finds them, so the span does not matter.
        """
        ordered = everything.order_by(*(f"-{name}" for name in self.newest_first))
        start = self._start(everything.model, before)
        if start is not None:
            ordered = ordered.filter(self._behind(start))
        last = None if indexed or not wanted else self._last_of_span(ordered)
        matching = ordered.filter(wanted)
        if last is not None:
            matching = matching.filter(self._down_to(self._key(last)))
        return self._rows(matching, last, continued=start is not None)

    def _rows(self, matching: QuerySet[Any], last: Any, *, continued: bool) -> Rows:
        rows = list(matching[: self.page + 1])
        count = len(rows) if len(rows) <= self.page else matching.order_by()[: COUNTED + 1].count()
        shown = rows[: self.page]
        older = shown[-1] if len(rows) > self.page else last
        return Rows(
            rows=shown,
            count=min(count, COUNTED),
            counted_more=count > COUNTED,
            older="" if older is None else self._cursor(older),
            continued=continued,
            looked_back_to=last,
        )

    def _last_of_span(self, ordered: QuerySet[Any]) -> Any:
        return next(iter(ordered.only(*self.newest_first)[self.span - 1 : self.span]), None)

    def _behind(self, key: Sequence[Any]) -> Q:
        first, *rest = self.newest_first
        if not rest:
            return Q(**{f"{first}__lt": key[0]})
        tie = Q(**{first: key[0]}) & Q(**{f"{rest[0]}__lt": key[1]})
        return Q(**{f"{first}__lte": key[0]}) & (Q(**{f"{first}__lt": key[0]}) | tie)

    def _down_to(self, key: Sequence[Any]) -> Q:
        """This row and those before it. As a range of the index, which a negation of ``_behind`` would not be."""
        first, *rest = self.newest_first
        if not rest:
            return Q(**{f"{first}__gte": key[0]})
        tie = Q(**{first: key[0]}) & Q(**{f"{rest[0]}__gte": key[1]})
        return Q(**{f"{first}__gte": key[0]}) & (Q(**{f"{first}__gt": key[0]}) | tie)

    def _key(self, row: Any) -> list[Any]:
        return [getattr(row, name) for name in self.newest_first]

    def _cursor(self, row: Any) -> str:
        fields = (row._meta.get_field(name) for name in self.newest_first)
        return SEPARATOR.join(field.value_to_string(row) for field in fields)

    def _start(self, model: type[Model], cursor: str) -> list[Any] | None:
        """What the cursor stands for; a forged one starts at the newest."""
        parts = cursor.split(SEPARATOR)
        if not cursor or len(parts) != len(self.newest_first):
            return None
        fields: list[Any] = [model._meta.get_field(name) for name in self.newest_first]
        try:
            return [field.to_python(part) for field, part in zip(fields, parts, strict=True)]
        except ValidationError:
            return None
