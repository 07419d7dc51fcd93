import os
from contextlib import contextmanager
from copy import deepcopy

import pytest
from django.db import connections

from tests.operations.support import VENDOR


@pytest.fixture
def empty_alias(django_db_setup, django_db_blocker, tmp_path):
    """A database alias ``fresh`` without tables. On PostgreSQL a schema of its own, alone on the search_path.

    Instead of the database mark, which would not let a test use an alias that is made meanwhile.
    """
    configuration = deepcopy(connections["default"].settings_dict)
    schema = f"jobs_{os.getpid()}"
    if VENDOR == "postgresql":
        configuration["OPTIONS"]["options"] = f"-c search_path={schema}"
    else:
        configuration["NAME"] = str(tmp_path / "fresh.sqlite3")
    connections.settings["fresh"] = configuration
    with django_db_blocker.unblock(), owned_schema(schema):
        try:
            yield "fresh"
        finally:
            connections["fresh"].close()
            del connections["fresh"]
            del connections.settings["fresh"]


@contextmanager
def owned_schema(name):
    if VENDOR != "postgresql":
        yield
        return
    execute(f'CREATE SCHEMA "{name}"')
    try:
        yield
    finally:
        execute(f'DROP SCHEMA "{name}" CASCADE')


def execute(sql):
    with connections["default"].cursor() as cursor:
        cursor.execute(sql)
