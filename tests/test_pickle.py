"""Whoever can write a row cannot run code: nothing here makes objects of bytes but JSON's."""

import ast
from pathlib import Path

import pytest

import django_jobs

PACKAGE = Path(django_jobs.__file__).parent
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "copyreg", "multiprocessing"}
CALLS = {"eval", "exec", "compile", "__import__"}


def suspects(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.Call(func=ast.Name(id=name)):
                yield name


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_unpickles_or_evaluates(path):
    found = set(suspects(ast.parse(path.read_text(encoding="utf-8"))))
    assert found & (MODULES | CALLS) == set()
