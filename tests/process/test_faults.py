"""The fault kit, ``python -m faults``, in its short form: each fault once. ``make faults`` is the long form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from faults.__main__ import listed
from tests.postgres_server import PostgresServer

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


def start_kit(arguments, **more):
    command = ("-m", "faults", "--short", "--format=json", f"--database={os.environ['TEST_DATABASE']}")
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_THE_KIT} | more
    return subprocess.Popen(
        [sys.executable, *command, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
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


@pytest.mark.skipif(os.environ["TEST_DATABASE"] != "postgresql", reason="a SQLite file is the kit's own")
def test_on_a_server_of_yours_it_leaves_nothing_and_names_what_it_skipped(tmp_path):
    report = tmp_path / "report.md"
    with PostgresServer() as server:
        kit = start_kit(["restart_fast", "hangs", f"--report={report}"], DATABASE_URL=server.url())
        try:
            restart, hangs = map(json.loads, kit.communicate(timeout=SECONDS)[0].splitlines())
        finally:
            kit.terminate()
            code = kit.wait()
        databases = server_databases(server)
    why = "it needs a PostgreSQL of the kit's own: run it without DATABASE_URL"
    assert (restart["verdict"], restart["skipped"]) == ("skipped", why)
    assert (hangs["verdict"], hangs["troubles"], code) == ("held", [], 0)
    assert databases == {"postgres", "template0", "template1"}
    page = report.read_text(encoding="utf-8")
    assert "1 faults held, 0 failed, 1 were skipped" in page
    assert f"- skipped: restart_fast (postgresql), because {why}" in page


def server_databases(server):
    with psycopg.connect(server.url()) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_each_fault_says_what_is_done():
    assert len(set(FAULTS)) == len(FAULTS) > 20
    assert all(what for _, what in listed())


def test_the_guide_names_each_fault():
    guide = (ROOT / "docs" / "guides" / "faults.md").read_text(encoding="utf-8")
    assert [name for name in FAULTS if f"`{name}`" not in guide] == []
