"""Every test that the page of guarantees names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith(("|---", "| fault"))]


@cache
def functions_in(path):
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path, name):
    assert name in functions_in(path)


def test_every_guarantee_names_a_test():
    assert [row for row in ROWS if "::test_" not in row] == []


def test_no_test_is_named_twice():
    assert sorted(set(NAMED)) == sorted(NAMED)
