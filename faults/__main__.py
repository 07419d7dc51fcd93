"""``python -m faults``: attack a worker fleet with all faults, or with those that are named."""

import argparse
import ast
import json
import os
import random
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import django

from faults import databases, report

CATALOGUE = Path(__file__).with_name("catalogue")


def main() -> None:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with databases.provided(arguments.database) as database:
        os.environ |= {"FAULTS_DATABASE": database.url, "DJANGO_SETTINGS_MODULE": "faults.settings"}
        django.setup()
        from faults.attack import attack, make_tables

        make_tables()
        results: list[report.Result] = []
        for name in arguments.names:
            results.append(attack(name, database, short=arguments.short, seed=arguments.seed, keep=arguments.keep))
            tell(results, arguments)
    sys.exit(report.exit_code(results))


def parse() -> argparse.Namespace:
    faults = dict(listed())
    parser = argparse.ArgumentParser(
        prog="python -m faults",
        description="Attack a worker fleet, and check that every promise holds. DATABASE_URL: on your server.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:34}{what}" for name, what in faults.items()),
    )
    parser.add_argument("names", nargs="*", metavar="fault", help="all, if none is named")
    parser.add_argument("--database", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--short", action="store_true", help="each fault once, with little load")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the faults and of the load")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="of the line after each fault")
    parser.add_argument("--report", type=Path, metavar="PATH", help="write a page, anew after each fault")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the logs and journals of all processes")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(faults):
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(faults)}")
    arguments.names = arguments.names or list(faults)
    return arguments


def listed() -> Iterator[tuple[str, str]]:
    """Names and first sentences, without setting up Django."""
    for path in sorted(CATALOGUE.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                yield node.name, (ast.get_docstring(node) or "").split(". ")[0].replace("\n", " ")


def tell(results: list[report.Result], arguments: argparse.Namespace) -> None:
    from faults import machine

    last = results[-1]
    if arguments.format == "json":
        print(json.dumps(last.as_json()), flush=True)
    else:
        print(report.line(last), *(f"    {trouble}" for trouble in last.troubles), sep="\n", flush=True)
    if arguments.report:
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        command = shlex.join(["python", "-m", "faults", *sys.argv[1:], f"--seed={arguments.seed}"])
        arguments.report.write_text(report.page(results, machine.line(), command), encoding="utf-8")


if __name__ == "__main__":
    main()
