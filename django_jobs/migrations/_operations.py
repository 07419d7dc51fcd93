"""What only one vendor's migration does. Each operation is a no-op elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel, RunSQL
from django.db.migrations.state import ProjectState

from django_jobs.models.partitions import add_partitions

DAYS_AHEAD = 7


class CreatePartitionedModel(CreateModel):
    """A CreateModel whose table PostgreSQL partitions by ranges of ``id``."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        schema_editor.sql_create_table = f"{type(schema_editor).sql_create_table} PARTITION BY RANGE (id)"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            del schema_editor.sql_create_table


class VendorSQL(RunSQL):
    """SQL for one vendor."""

    def __init__(self, vendor: str, sql: Any, reverse_sql: Any) -> None:
        super().__init__(sql, reverse_sql)
        self.vendor = vendor

    def deconstruct(self) -> Any:
        return type(self).__name__, [self.vendor, self.sql, self.reverse_sql], {}

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor == self.vendor:
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor == self.vendor:
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def add_first_partitions(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Yesterday to DAYS_AHEAD days ahead, so that a skewed clock or a late first worker finds its day."""
    if schema_editor.connection.vendor != "postgresql":
        return
    today = datetime.now(UTC).date()
    with schema_editor.connection.cursor() as cursor:
        add_partitions(cursor, [today + timedelta(days=n) for n in range(-1, DAYS_AHEAD + 1)])
