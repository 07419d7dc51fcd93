"""``python -m benchmarks``: run all benchmarks, or those that are named, and print their figures."""

import argparse
import ast
import json
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import databases, report
from benchmarks.rounds import Scale

FOLDER = Path(__file__).with_name("measurements")
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def main() -> None:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with databases.provided() as provided:
        from benchmarks import machine

        facts = machine.facts()
        if arguments.format == "table":
            print(machine.line(facts))
        results = {name: measure(name, provided, arguments) for name in arguments.names or NAMES}
    if arguments.format == "json":
        print(json.dumps({"machine": facts, "quick": arguments.quick, "benchmarks": results}, indent=2))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:24}{question(name)}" for name in NAMES),
    )
    parser.add_argument("names", nargs="*", metavar="name", help="all, if none is named")
    parser.add_argument("--quick", action="store_true", help="small and short: to see that all works")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    return arguments


def measure(name: str, provided: databases.Databases, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    print(f"{name} …", file=sys.stderr, flush=True)
    start = time.monotonic()
    figures = import_module(f"benchmarks.measurements.{name}").measure(Scale(arguments.quick), provided)
    if arguments.format == "table":
        print(f"\n{name} ({time.monotonic() - start:.0f} s{', quick' if arguments.quick else ''})")
        print(*report.wrapped(docstring(name)), "", report.table(figures), sep="\n", flush=True)
    return [figure.as_json() for figure in figures]


def question(name: str) -> str:
    return docstring(name).splitlines()[0]


def docstring(name: str) -> str:
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or name


if __name__ == "__main__":
    main()
