"""System checks. What opens a connection is tagged ``database`` and looks only where it is told to.

Errors mean that jobs cannot work; warnings, that a promise does not hold; the one info tells the connection budget.
``check --tag django_jobs`` runs those that connect to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Info, Tags, register
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import NotSupportedError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Now

from .conf import SETTING, Settings, did_you_mean, get_settings
from .engines import SUPPORTED
from .exceptions import ConfigurationError, EnqueueError, UnknownQueue
from .models import Job, Worker
from .models.worker import alive, slots_in
from .operations.declared_schedules import declared_schedules
from .policy import MOST_IDLE
from .registry import registry

TAG = "django_jobs"

Check = Callable[..., list[CheckMessage]]


@register(TAG)
def check_settings(**_: Any) -> list[CheckMessage]:
    try:
        get_settings()
    except ConfigurationError as error:
        return [Error(str(error), hint=f"Change {SETTING} in your settings.", id="django_jobs.E001")]
    return []


def _with_settings(check: Callable[[Settings], Iterable[CheckMessage]]) -> Check:
    """Leave it to E001 to say that the settings are wrong."""

    def checked(**_: Any) -> list[CheckMessage]:
        try:
            return list(check(get_settings()))
        except ConfigurationError:
            return []

    return checked


@register(TAG)
@_with_settings
def check_aliases(settings: Settings) -> Iterable[CheckMessage]:
    known = list(connections)
    if settings.database not in known:
        yield Error(
            f"{SETTING}['DATABASE'] is {settings.database!r}, which DATABASES does not have."
            f"{did_you_mean(settings.database, known)}",
            hint=f"Set it to one of: {', '.join(known)}.",
            id="django_jobs.E003",
        )
    for alias in sorted(settings.harmless_aliases - set(known)):
        yield Caution(
            f"{SETTING}['HARMLESS_ALIASES'] names {alias!r}, which DATABASES does not have."
            f"{did_you_mean(alias, known)}",
            hint="Correct the name or remove it.",
            id="django_jobs.W003",
        )


@register(TAG)
@_with_settings
def check_autocommit(settings: Settings) -> Iterable[CheckMessage]:
    for alias, database in connections.settings.items():
        if database.get("AUTOCOMMIT", True):
            continue
        hint = f"Remove AUTOCOMMIT from DATABASES[{alias!r}]."
        if alias == settings.database:
            yield Error(
                f"Jobs are kept in {alias!r}, which has AUTOCOMMIT False: Django's atomic() commits nothing there.",
                hint=hint,
                id="django_jobs.E009",
            )
        else:
            yield Caution(
                f"Database alias {alias!r} has AUTOCOMMIT False: a run that has only read from it and does not commit "
                "has left a transaction open, and fails.",
                hint=hint,
                id="django_jobs.W004",
            )


@register(TAG)
@_with_settings
def check_backend(settings: Settings) -> Iterable[CheckMessage]:
    connection = _connection(settings)
    if isinstance(connection, ImproperlyConfigured):
        yield _driver_error(settings, str(connection))
    elif connection is None:
        return
    elif connection.vendor not in SUPPORTED:
        yield Error(
            f"Database alias {settings.database!r} is {connection.vendor}; jobs can live in PostgreSQL or SQLite.",
            hint=f"Set {SETTING}['DATABASE'] to an alias of one of these.",
            id="django_jobs.E002",
        )
    elif connection.vendor == "postgresql" and not _uses_psycopg3():
        yield _driver_error(settings, "it is used through psycopg2")
    elif connection.vendor == "sqlite" and _transaction_mode(connection) != "IMMEDIATE":
        yield Caution(
            f"SQLite alias {settings.database!r} does not begin its transactions with IMMEDIATE: one that reads before "
            "it writes fails with 'database is locked' as soon as a worker writes.",
            hint=f"Set DATABASES[{settings.database!r}]['OPTIONS']['transaction_mode'] = 'IMMEDIATE'.",
            id="django_jobs.W001",
        )


def _connection(settings: Settings) -> BaseDatabaseWrapper | ImproperlyConfigured | None:
    """Django's connection object, which has connected to nothing yet. None: E003 says why."""
    if settings.database not in connections:
        return None
    try:
        return connections[settings.database]
    except ImproperlyConfigured as error:
        return error


def _driver_error(settings: Settings, reason: str) -> CheckMessage:
    return Error(
        f"Database alias {settings.database!r} cannot be used through psycopg 3: {reason}.",
        hint='Install it: pip install "django-durable-jobs[binary]".',
        id="django_jobs.E005",
    )


def _uses_psycopg3() -> bool:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415 - absent without a driver

    return bool(is_psycopg3)


def _transaction_mode(connection: BaseDatabaseWrapper) -> str:
    return str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "").upper()


@register(TAG)
@_with_settings
def check_router(settings: Settings) -> Iterable[CheckMessage]:
    if settings.database not in connections:
        return
    written = router.db_for_write(Job)
    if written != settings.database or not router.allow_migrate_model(settings.database, Job):
        fault = (
            f"sends jobs to {written!r}" if written != settings.database else "does not let their tables be made there"
        )
        yield Error(
            f"Jobs are kept in {settings.database!r} ({SETTING}['DATABASE']), but DATABASE_ROUTERS {fault}.",
            hint="Put 'django_jobs.routers.JobsRouter' first in DATABASE_ROUTERS, or change DATABASE.",
            id="django_jobs.E004",
        )


@register(TAG)
@_with_settings
def check_queues_of_job_types(settings: Settings) -> Iterable[CheckMessage]:
    for job_type in registry:
        try:
            settings.declared(job_type.queue or settings.first_queue)
        except UnknownQueue as error:
            yield Error(f"Job type {job_type.name!r}: {error}", obj=job_type.handler, id="django_jobs.E006")


@register(TAG)
@_with_settings
def check_declared_schedules(settings: Settings) -> Iterable[CheckMessage]:
    for spec in declared_schedules:
        try:
            spec.columns()
        except EnqueueError as error:
            yield Error(
                f"Schedule {spec.name!r}: {error}",
                hint="Correct the schedule() call; until then it is not synced.",
                id="django_jobs.E010",
            )


@register(TAG)
@_with_settings
def check_mail_of_alerts(settings: Settings) -> Iterable[CheckMessage]:
    if "mail" in settings.notifiers and not django_settings.ADMINS:
        yield Caution(
            f"{SETTING}['NOTIFIERS'] lists 'mail', and ADMINS is empty: nobody gets the mail about an alert.",
            hint="Set ADMINS, or remove 'mail'.",
            id="django_jobs.W006",
        )


@register(TAG)
def check_time_zones(**_: Any) -> list[CheckMessage]:
    if django_settings.USE_TZ:
        return []
    return [
        Error(
            "USE_TZ is False. The times of jobs are instants; Django would take them for local wall times.",
            hint="Set USE_TZ = True.",
            id="django_jobs.E008",
        )
    ]


def _of_server(check: Callable[[BaseDatabaseWrapper], Iterable[CheckMessage]]) -> Check:
    """Asks the jobs' PostgreSQL, if it is among ``databases``."""

    def checked(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
        def ask(settings: Settings) -> Iterable[CheckMessage]:
            connection = _connection(settings) if settings.database in (databases or ()) else None
            if isinstance(connection, BaseDatabaseWrapper) and connection.vendor == "postgresql":
                yield from check(connection)

        return _with_settings(ask)()

    return checked


@register(Tags.database)  # not TAG too: Django 6.1 runs what an asked-for tag names, on every alias
@_of_server
def check_server(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('synchronous_commit'), current_user")
            synchronous_commit, role = cursor.fetchone()
    except NotSupportedError as error:
        yield Error(
            f"Database alias {connection.alias!r} is too old: {error}",
            hint="Upgrade the server.",
            id="django_jobs.E007",
        )
        return
    if synchronous_commit == "off":
        yield Caution(
            f"synchronous_commit is off for role {role!r} on {connection.alias!r}: a crash of PostgreSQL loses jobs "
            "whose transaction was reported as committed.",
            hint=f"Switch it on: ALTER ROLE {role} SET synchronous_commit = on, or in the server's configuration.",
            id="django_jobs.W002",
        )
    needed, allowed, text = _budget(connection)
    if needed > allowed:
        yield Caution(
            text,
            hint="Run fewer processes or slots, or raise max_connections (or the limit of the database or the role).",
            id="django_jobs.W005",
        )


@register(Tags.database, deploy=True)  # not with each ``migrate`` and each test run, as the others of its tag
@_of_server
def check_budget(connection: BaseDatabaseWrapper) -> Iterable[CheckMessage]:
    """Tells the sum where it fits; W005 tells it where it does not."""
    with suppress(NotSupportedError):  # E007 says so
        needed, allowed, text = _budget(connection)
        if needed <= allowed:
            left = allowed - needed
            yield Info(text, hint=f"{left} are left for web processes and everybody else.", id="django_jobs.I001")


# Of each worker process: the loop, the renewer, and maintenance, which uses Django's connection as well.
SERVICE_CONNECTIONS = 4
# For a moment: the leader's slow services and its telling of alerts, and on each machine a supervisor that clears up
# after a death.
LEADER_CONNECTIONS, SUPERVISOR_CONNECTIONS = 2, 2
ALLOWED = """
SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                 - coalesce(current_setting('reserved_connections', true), '0')::int,
             (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
             (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user))
"""


def _budget(connection: BaseDatabaseWrapper) -> tuple[int, int, str]:
    """The connections that the workers which are running, or else one, may open; those that the server allows; and
    both in words.
    """
    with connection.cursor() as cursor:
        cursor.execute(ALLOWED)
        (allowed,) = cursor.fetchone()
    slots, machines = _fleet(connection)
    idle = sum(min(size, MOST_IDLE) for size in slots) if any(one.isolation for one in registry) else 0
    others = LEADER_CONNECTIONS + SUPERVISOR_CONNECTIONS * machines + idle
    needed = sum(slots) + SERVICE_CONNECTIONS * len(slots) + others
    isolated = f", {idle} of idle processes of isolated handlers among them" if idle else ""
    text = (
        f"The workers may open {needed} connections to {connection.alias!r}, and the server allows {allowed}, "
        f"those of the web processes included. Worker processes: {len(slots)}, each with a connection for each "
        f"slot ({sum(slots)} in all) and {SERVICE_CONNECTIONS} more; {others} others{isolated}."
    )
    return needed, allowed, text


def _fleet(connection: BaseDatabaseWrapper) -> tuple[list[int], int]:
    """The slots of each process that was seen within the last minute, and on how many machines. As if there was one
    where none is, as before the first ``migrate``.
    """
    found = []
    if Worker._meta.db_table in connection.introspection.table_names():
        workers = Worker.objects.using(connection.alias).filter(alive(Now()))
        found = list(workers.values_list("host", "queues"))
    if not found:
        return [get_settings().concurrency], 1
    return [slots_in(groups) for _, groups in found], len({host for host, _ in found})
