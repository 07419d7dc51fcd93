"""The engines, chosen by the database's vendor."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

from django.db import connections

from django_jobs.exceptions import ConfigurationError

from .config import EngineConfig
from .protocol import Session, Statements

SUPPORTED = ("postgresql", "sqlite")


def statements(alias: str) -> Statements:
    """The statements for this alias. Raises ConfigurationError for a database that is not supported."""
    return _statements_of(_vendor(alias))


@cache
def _statements_of(vendor: str) -> Statements:
    if vendor == "postgresql":
        from .postgresql.statements import PostgresqlStatements

        return PostgresqlStatements()
    from .portable.statements import PortableStatements

    return PortableStatements()


def open_session(config: EngineConfig) -> Session:
    """A session of the calling thread. It connects on first use."""
    if _vendor(config.alias) == "postgresql":
        from .postgresql.session import PostgresqlSession

        return PostgresqlSession(config)
    from .portable.session import PortableSession

    return PortableSession(config)


def stand_alone(config: EngineConfig, patience: timedelta) -> None:
    """Give the calling thread a Django connection of its own for the jobs alias, which handlers cannot starve. It gives
    up on a statement that is not answered within ``patience``.
    """
    if _vendor(config.alias) == "postgresql":
        from .postgresql.connecting import stand_alone

        stand_alone(config.alias, patience)


def _vendor(alias: str) -> str:
    vendor = connections[alias].vendor
    if vendor not in SUPPORTED:
        raise ConfigurationError(
            f"Database alias {alias!r} is {vendor}; jobs can live in PostgreSQL or SQLite. "
            "Set DJANGO_JOBS['DATABASE'] to an alias of one of these."
        )
    return vendor
