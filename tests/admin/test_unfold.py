"""The pages under django-unfold, which takes the admin's templates and site over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(os.environ["TEST_DATABASE"] != "sqlite", reason="the same pages as on SQLite, where this runs")
def test_each_page_works_under_unfold():
    """In a process of its own, with ``tests/unfold``."""
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "TEST_SQLITE_DIR")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--ds=tests.unfold_settings", "tests/unfold"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout, done.stdout
