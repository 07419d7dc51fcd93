"""The fault kit, ``python -m faults``, in its short form: each fault once. ``make faults`` is the long form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.__main__ import listed

ROOT = Path(__file__).parents[2]
SECONDS = 900
NOT_FOR_THE_KIT = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")
FAULTS = [name for name, _ in listed()]


@pytest.fixture(autouse=True)
def committed_data():
    """The kit has a database of its own; the one of the tests is not asked for."""


@pytest.fixture(scope="module")
def results(request):
    """Of the faults whose tests were collected. They wait more than they work, so two kits run side by side."""
    items = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    names = [item.callspec.params["name"] for item in items]
    kits = [start_kit(half) for half in (names[::2], names[1::2]) if half]
    try:
        lines = [line for kit in kits for line in kit.communicate(timeout=SECONDS)[0].splitlines()]
    finally:
        for kit in kits:
            kit.terminate()
            kit.wait()
    return {result["fault"]: result for result in map(json.loads, lines)}


def start_kit(names):
    command = ("-m", "faults", "--short", "--format=json", f"--database={os.environ['TEST_DATABASE']}")
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_THE_KIT}
    return subprocess.Popen(
        [sys.executable, *command, *names], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("name", FAULTS)
def test_every_promise_holds_under(name, results):
    assert name in results, "the kit ended before"
    result = results[name]
    if result["skipped"]:
        pytest.skip(result["skipped"])
    assert result["troubles"] == [], f"seed {result['seed']}"
    assert result["acknowledged"] > 20
    assert result["succeeded"] + result["dead"] >= result["acknowledged"]


def test_each_fault_says_what_is_done():
    assert len(set(FAULTS)) == len(FAULTS) > 20
    assert all(what for _, what in listed())


def test_the_guide_names_each_fault():
    guide = (ROOT / "docs" / "guides" / "faults.md").read_text(encoding="utf-8")
    assert [name for name in FAULTS if f"`{name}`" not in guide] == []
