"""What a benchmark says: figures, each with what it is compared with and the goal it is held against."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """``least`` or ``most``: what the ratio or the value may be at the lowest or the highest."""

    of: Literal["value", "ratio"] = "ratio"
    least: float | None = None
    most: float | None = None

    def is_met(self, figure: "Figure") -> bool:
        number = figure.ratio if self.of == "ratio" else figure.value
        assert number is not None
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        bounds = [f"≥ {self.least:,g}"] if self.least is not None else []
        bounds += [f"≤ {self.most:,g}"] if self.most is not None else []
        return " ".join([*(["ratio"] if self.of == "ratio" else []), *bounds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Medians. ``low`` and ``high``: the rounds' ratios, or their values where there is nothing to compare with."""

    what: str
    value: float
    unit: str
    against: str = ""
    compared: float | None = None
    low: float | None = None
    high: float | None = None
    goals: tuple[Goal, ...] = ()

    @classmethod
    def comparing(
        cls, what: str, ours: Sequence[float], unit: str, against: str, theirs: Sequence[float], *goals: Goal
    ) -> Self:
        """Both sides' medians, and the range of the ratios of rounds that were neighbours."""
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        return cls(
            what=what,
            value=median(ours),
            unit=unit,
            against=against,
            compared=median(theirs),
            low=min(ratios),
            high=max(ratios),
            goals=goals,
        )

    @classmethod
    def of(cls, what: str, values: Sequence[float], unit: str, *goals: Goal) -> Self:
        return cls(what=what, value=median(values), unit=unit, low=min(values), high=max(values), goals=goals)

    @property
    def ratio(self) -> float | None:
        return None if self.compared is None else self.value / self.compared

    def as_json(self) -> dict[str, Any]:
        names = ("what", "value", "unit", "against", "compared", "ratio", "low", "high")
        facts = {name: getattr(self, name) for name in names}
        rounded = {name: float(f"{fact:.4g}") if isinstance(fact, float) else fact for name, fact in facts.items()}
        return rounded | {"goals": [{"goal": str(goal), "met": goal.is_met(self)} for goal in self.goals]}
