"""One ``enqueue()`` after the other in autocommit mode, against a bare INSERT with the same columns and values.

One client, through Django, no worker asleep; the INSERT by a Django cursor goes into a twin of the jobs table.
"""

from collections.abc import Callable

from benchmarks.databases import Databases
from benchmarks.figures import Figure
from benchmarks.measurements.business_transaction import enqueue, insert
from benchmarks.rounds import Scale, in_turns, rate
from benchmarks.tables import TWIN, empty, execute, make_twin


def measure(scale: Scale, databases: Databases) -> list[Figure]:
    make_twin()
    empty("default", TWIN)
    times = scale.of(1000, 200)
    sides = {
        "enqueue": lambda: rate(times, lambda: repeat(enqueue, times)),
        "insert": lambda: rate(times, lambda: repeat(insert, times)),
    }
    turns = in_turns(sides, scale.of(11, 3))
    execute(f"DROP TABLE {TWIN}")
    return [Figure.comparing("enqueue() in autocommit", turns["enqueue"], "/s", "bare INSERT", turns["insert"])]


def repeat(work: Callable[[int], object], times: int) -> None:
    for number in range(times):
        work(number)
