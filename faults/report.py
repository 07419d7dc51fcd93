"""What was done and what was found, as a page for people and as lines of JSON for programs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from faults.verdict import Verdict

HEADER = (
    "fault",
    "rounds",
    "acknowledged",
    "ended once",
    "runs",
    "lost",
    "two at once",
    "recovery (s)",
    "lease (s)",
    "took (s)",
    "verdict",
)
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of one fault. ``skipped``: why it was not done."""

    name: str
    what: str
    vendor: str
    seed: int
    seconds: float = 0.0
    lease: float = 0.0
    rounds: int = 0
    skipped: str | None = None
    verdict: Verdict | None = None
    recoveries: Sequence[float] = ()
    troubles: Sequence[str] = ()

    @property
    def word(self) -> str:
        if self.skipped is not None:
            return "skipped"
        return "held" if not self.troubles else "FAILED"

    @property
    def recovery(self) -> tuple[float, ...]:
        """Median and maximum, in seconds."""
        return (median(self.recoveries), max(self.recoveries)) if self.recoveries else ()

    def as_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "fault": self.name,
            "database": self.vendor,
            "seed": self.seed,
            "verdict": self.word,
            "skipped": self.skipped,
            "troubles": list(self.troubles),
            "seconds": round(self.seconds, 1),
        }
        if (verdict := self.verdict) is not None:
            facts |= {
                "rounds": self.rounds,
                "lease": self.lease,
                "acknowledged": verdict.acknowledged,
                "succeeded": verdict.succeeded,
                "dead": verdict.dead,
                "runs": verdict.runs,
                "failed_runs": verdict.failed_runs,
                "lost_runs": verdict.lost_runs,
                "two_at_once": dict(verdict.two_at_once),
                "recovery": [round(seconds, 2) for seconds in self.recovery],
            }
        return facts


def exit_code(results: Sequence[Result]) -> int:
    return int(any(result.troubles for result in results))


def line(result: Result) -> str:
    return f"{result.name:34}{result.word:8} {result.skipped or ''}{_figures(result)}"


def _figures(result: Result) -> str:
    if (verdict := result.verdict) is None:
        return ""
    return (
        f"{result.seconds:5.1f} s, {result.rounds} rounds, {verdict.acknowledged} jobs, {verdict.runs} runs, "
        f"{verdict.lost_runs} lost, two at once: {_reasons(verdict.two_at_once)}, recovery {_recovery(result)}"
    )


def page(results: Sequence[Result], machine: str, command: str) -> str:
    """Markdown."""
    failed = [result for result in results if result.troubles]
    held = sum(result.word == "held" for result in results)
    skipped = [result for result in results if result.skipped is not None]
    return "\n".join(
        [
            "# Faults: what was done and what was found",
            "",
            f"{held} faults held, {len(failed)} failed, {len(skipped)} were skipped. {machine}.",
            "",
            f"Again: `{command}`",
            "",
            *_table([result for result in results if result.verdict is not None]),
            "",
            *(line for result in failed for line in _troubles(result)),
            *(f"- skipped: {result.name} ({result.vendor}), because {result.skipped}" for result in skipped),
            *(["", "## What each fault is", ""] if results else []),
            *dict.fromkeys(f"- **{result.name}**: {result.what}" for result in results),
            "",
        ]
    )


def _table(results: Sequence[Result]) -> list[str]:
    rows = [HEADER, tuple("---" for _ in HEADER), *map(_row, results)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _row(result: Result) -> tuple[str, ...]:
    verdict = result.verdict
    assert verdict is not None
    return (
        f"{result.name} ({result.vendor})",
        str(result.rounds),
        f"{verdict.acknowledged:,}",
        f"{verdict.succeeded:,} succeeded, {verdict.dead:,} dead",
        f"{verdict.runs:,}",
        str(verdict.lost_runs),
        _reasons(verdict.two_at_once),
        _recovery(result),
        f"{result.lease:g}",
        f"{result.seconds:.0f}",
        result.word,
    )


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in counts.items()) or "0"


def _recovery(result: Result) -> str:
    if not result.recovery:
        return "-"
    middle, longest = result.recovery
    return f"p50 {middle:.1f}, max {longest:.1f}"


def _troubles(result: Result) -> list[str]:
    shown = [f"    {part}" for trouble in result.troubles[:MOST_SHOWN] for part in trouble.splitlines()]
    return [f"## FAILED: {result.name} ({result.vendor}), seed {result.seed}", "", *shown, ""]
