"""Measuring in turns, so that whatever else the machine does in the meantime hits all sides alike."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Scale:
    """``quick``: see that all works; the figures mean little."""

    quick: bool = False

    def of(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def in_turns(sides: Mapping[str, Measure], rounds: int, *, warm_up: bool = True) -> dict[str, list[float]]:
    """A B A B …: the results of each side, one for each round. A warm-up round comes first and does not count."""
    results: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(-1 if warm_up else 0, rounds):
        for name, measure in sides.items():
            gc.collect()
            result = measure()
            if number >= 0:
                results[name].append(result)
    return results


def rate(times: int, work: Callable[[], object]) -> float:
    """How often a second ``work`` that does it ``times`` times."""
    start = time.perf_counter()
    work()
    return times / (time.perf_counter() - start)
