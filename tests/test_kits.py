"""The kits beside the package, ``benchmarks`` and ``faults``: nothing of them is so old that it does not start."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOWHERE = "postgresql://nobody@localhost:1/nowhere"
ENVIRONMENT = {
    "BENCHMARK_POSTGRESQL": NOWHERE,
    "BENCHMARK_POSTGRESQL_SMALL": NOWHERE,
    "BENCHMARK_SQLITE": "nowhere.sqlite3",
    "FAULTS_DATABASE": NOWHERE,
}
IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module
import django
django.setup()
for module in pkgutil.walk_packages(import_module(sys.argv[1]).__path__, f"{sys.argv[1]}."):
    print(import_module(module.name).__name__)
"""
MARKED = r'^@fault\(.*?^def (\w+)\(.*?\n    """(.*?)"""'
KITS = ["benchmarks", "faults"]


def python(*arguments, **environment):
    command = [sys.executable, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("kit", KITS)
def test_every_module_can_be_imported(kit):
    ended = python("-W", "error", "-c", IMPORT_ALL, kit, DJANGO_SETTINGS_MODULE=f"{kit}.settings", **ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr
    files = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / kit).rglob("*.py")]
    names = {".".join(path.parts).removesuffix(".__init__") for path in files} - {kit}
    assert set(ended.stdout.split()) == names


def benchmarks():
    """Name and first line of the docstring."""
    for path in (ROOT / "benchmarks" / "measurements").glob("*.py"):
        if path.stem != "__init__":
            yield path.stem, (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def faults():
    """Name and first sentence of what is marked as a fault."""
    for path in (ROOT / "faults" / "catalogue").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name, docstring in re.findall(MARKED, text, re.MULTILINE | re.DOTALL):
            yield name, docstring.split(". ")[0].replace("\n", " ")


@pytest.mark.parametrize(("kit", "parts"), [("benchmarks", benchmarks), ("faults", faults)])
def test_the_help_lists_every_part_with_what_it_is_about(kit, parts):
    ended = python("-m", kit, "--help")
    assert ended.returncode == 0, ended.stderr
    expected = {name: " ".join(words.split()) for name, words in parts()}
    assert len(expected) > 15
    assert "" not in expected.values()
    listed = re.findall(r"^  (\w+) +(\S.*)$", ended.stdout.partition("options:")[2], re.MULTILINE)
    shown = {name: " ".join(words.split()) for name, words in listed}
    assert shown == expected
