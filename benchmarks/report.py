"""Figures as a table for people."""

from collections.abc import Iterator, Sequence

from benchmarks.figures import Figure

HEADER = ("", "measured", "compared with", "ratio", "rounds", "goal", "")


def table(figures: Sequence[Figure]) -> str:
    rows = [HEADER, *map(_cells, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def wrapped(text: str) -> Iterator[str]:
    yield from (f"  {line}".rstrip() for line in text.strip().splitlines())


def _cells(figure: Figure) -> tuple[str, ...]:
    compared = "" if figure.compared is None else f"{number(figure.compared)} {figure.unit} ({figure.against})"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
    spread = "" if figure.low is None or figure.high is None else f"{number(figure.low)} to {number(figure.high)}"
    met = ", ".join("met" if goal.is_met(figure) else "not met" for goal in figure.goals)
    goals = ", ".join(map(str, figure.goals))
    return (figure.what, f"{number(figure.value)} {figure.unit}", compared, ratio, spread, goals, met)


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
