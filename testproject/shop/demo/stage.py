"""Where the demo takes place: its database, its folder, its settings. All of it comes from the environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError, connection

MANAGE = settings.BASE_DIR / "manage.py"
REVIEW_DELAY = 4.0  # seconds
DATABASE_FILE = settings.VAR_DIR / "demo.sqlite3"


def variables() -> dict[str, str]:
    """What the environment must say. A database that the caller chose stays."""
    return {
        "DATABASE_URL": os.environ.get("DATABASE_URL") or f"sqlite:///{DATABASE_FILE}",
        "SHOP_DIR": str(settings.VAR_DIR / "demo"),
        "SHOP_REVIEW_DELAY": str(REVIEW_DELAY),
    }


def enter() -> None:
    """Start this command anew unless its settings were read from the demo's environment."""
    wanted = variables()
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, str(MANAGE), *sys.argv[1:]], os.environ | wanted)


def clear() -> None:
    """Remove the last demo's files, and its database if that is the demo's own."""
    shutil.rmtree(settings.SHOP_DIR, ignore_errors=True)
    Path(settings.SHOP_DIR).mkdir(parents=True)
    if has_own_database():
        for suffix in ("", "-wal", "-shm"):
            Path(f"{DATABASE_FILE}{suffix}").unlink(missing_ok=True)


def has_own_database() -> bool:
    return str(connection.settings_dict["NAME"]) == str(DATABASE_FILE)


def connect() -> str:
    """Return the database's name for people. Raises CommandError if it does not answer."""
    name = connection.settings_dict["NAME"]
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise CommandError(f"The database {name!r} of DATABASE_URL does not answer: {error}") from None
    if connection.vendor == "sqlite":
        return f"SQLite, {shown(Path(name))}"
    version = ".".join(map(str, connection.get_database_version()))
    return f"{connection.display_name} {version}, database {name!r}"


def command(arguments: str) -> str:
    """How to call manage.py so that it sees this database."""
    call = f"{shown(Path(sys.executable))} {shown(MANAGE)} {arguments}"
    if arguments.startswith("demo"):
        return call
    database = f"sqlite:///{DATABASE_FILE}" if has_own_database() else '"$DATABASE_URL"'
    return f"DATABASE_URL={database} {call}"


def shown(path: Path) -> str:
    """The path as the reader would type it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
