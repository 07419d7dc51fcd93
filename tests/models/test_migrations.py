"""The migrations: complete, reversible, and the same for every project."""

import subprocess
import sys

import pytest
from django.core.management import call_command
from django.db import connections

from django_jobs import models
from django_jobs.ids import uuid7
from tests.factories import DeadJobFactory
from tests.operations.support import VENDOR, on_postgresql

OURS = {model._meta.db_table for model in vars(models).values() if hasattr(model, "_meta")}

SCRIPT = """
import django
from django.conf import settings
from django.core.management import call_command
settings.configure(
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    INSTALLED_APPS=["django_jobs"],
    DEFAULT_AUTO_FIELD="django.db.models.{field}",
    USE_TZ=True,
)
django.setup()
call_command("makemigrations", "django_jobs", check_changes=True, dry_run=True)
call_command("migrate", verbosity=0)
"""


def tables(alias):
    with connections[alias].cursor() as cursor:
        return {
            table.name
            for table in connections[alias].introspection.get_table_list(cursor)
            if table.name.startswith("django_jobs")
        }


def relations_of_schema(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace")
        found = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace")
        return found | {name for (name,) in cursor.fetchall()}


@pytest.mark.parametrize("field", ["AutoField", "SmallAutoField", "BigAutoField"])
def test_no_default_auto_field_needs_another_migration(field):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(field=field)], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", "django_jobs", check_changes=True, dry_run=True, verbosity=0)


def test_the_migrations_go_forwards_and_backwards_and_forwards_again(empty_alias):
    migrate = {"database": empty_alias, "verbosity": 0}
    call_command("migrate", "django_jobs", **migrate)
    made = tables(empty_alias)
    assert made >= OURS
    call_command("migrate", "django_jobs", "zero", **migrate)
    assert tables(empty_alias) == set()
    call_command("migrate", "django_jobs", **migrate)
    assert tables(empty_alias) == made


@on_postgresql
def test_backwards_leaves_nothing_behind(empty_alias):
    migrate = {"database": empty_alias, "verbosity": 0}
    call_command("migrate", "django_jobs", **migrate)
    call_command("migrate", "django_jobs", "zero", **migrate)
    assert {name for name in relations_of_schema(empty_alias) if name.startswith("django_jobs")} == set()


def test_jobs_that_were_dead_before_are_counted(empty_alias):
    migrate = {"database": empty_alias, "verbosity": 0}
    call_command("migrate", "django_jobs", "0001", **migrate)
    dead = DeadJobFactory.build_batch(3)
    models.DeadJob.objects.using(empty_alias).bulk_create(dead)
    call_command("migrate", "django_jobs", **migrate)
    models.DeadJob.objects.using(empty_alias).create(id=uuid7(), max_attempts=1, type="noop", payload={})
    models.DeadJob.objects.using(empty_alias).filter(id=dead[0].id).delete()
    changes = models.DeadGroupChange.objects.using(empty_alias).order_by("id")
    assert list(changes.values_list("change", flat=True)) == [1, 1, 1, 1, -1]


def test_the_sql_can_be_shown(empty_alias, capsys):
    call_command("sqlmigrate", "django_jobs", "0001", database=empty_alias)
    shown = capsys.readouterr().out
    assert ("PARTITION BY RANGE" in shown) == (VENDOR == "postgresql")
