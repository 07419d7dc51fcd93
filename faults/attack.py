"""One fault from its beginning to its verdict."""

import shutil
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.db import connection

from faults import journal
from faults.arena import Arena
from faults.catalogue import catalogue
from faults.databases import Database
from faults.fault import CannotHappen
from faults.gathering import gather
from faults.report import Result
from faults.verdict import judge

APPS = ("django_jobs", "faults_app")


def make_tables() -> None:
    call_command("migrate", verbosity=0, run_syncdb=True)


def attack(name: str, database: Database, *, short: bool, seed: int, keep: Path | None) -> Result:
    fault = catalogue[name]
    blank = Result(name=name, what=fault.what, vendor=database.vendor, seed=seed)
    if obstacle := fault.obstacle(database):
        return replace(blank, skipped=obstacle)
    empty()
    began = journal.now()
    with _folder(name, keep) as folder:
        arena = Arena(database, folder, short=short, seed=seed)
        try:
            fault.happen(arena)
            return _judged(arena, blank, began)
        except CannotHappen as reason:
            return replace(blank, skipped=str(reason))
        except Exception:
            troubles = [*arena.unexpected, traceback.format_exc(), *(worker.tail for worker in arena.workers)]
            return replace(blank, seconds=journal.now() - began, troubles=troubles)
        finally:
            arena.end()


def _judged(arena: Arena, blank: Result, began: float) -> Result:
    arena.finish()
    verdict = judge(gather(arena.lease, arena.silences))
    return replace(
        blank,
        seconds=journal.now() - began,
        lease=arena.lease,
        rounds=arena.rounds_done,
        verdict=verdict,
        recoveries=[*arena.recoveries, *verdict.recoveries],
        troubles=[*arena.unexpected, *verdict.wrong],
    )


def empty() -> None:
    """No fault sees what an earlier one left."""
    connection.close()
    tables = [model._meta.db_table for model in apps.get_models() if model._meta.app_label in APPS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(tables)}")
        else:
            for table in tables:
                cursor.execute(f"DELETE FROM {table}")


@contextmanager
def _folder(name: str, keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="django-jobs-fault-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    folder = keep.resolve() / f"{name}-{connection.vendor}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
