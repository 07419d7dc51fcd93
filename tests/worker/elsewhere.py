"""Pointing the alias ``default`` of worker threads somewhere else, while the test keeps its own connection."""

from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connections

from tests.tcp_proxy import TcpProxy


def server_address():
    """Of the PostgreSQL of the test run: a path, or host and port."""
    parameters = connections["default"].get_connection_params()
    host, port = parameters.get("host", "localhost"), int(parameters.get("port") or 5432)
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)


@contextmanager
def pointed_to(*, options=None, **place):
    """What connects from here on, in any thread, goes there; the connection that this thread has open stays."""
    wrapper = connections["default"]
    wrapper.ensure_connection()
    before = wrapper.settings_dict.copy()
    changed = before | place | {"OPTIONS": before["OPTIONS"] | (options or {})}
    _change(wrapper, changed)
    try:
        yield
    finally:
        _change(wrapper, before)


def _change(wrapper, settings):
    wrapper.settings_dict.clear()
    wrapper.settings_dict.update(settings)
    connections.settings["default"] = wrapper.settings_dict


@contextmanager
def pool_of(size):
    """Worker threads take their connections from a pool of Django's."""
    pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed (psycopg[pool])")
    wrapper = connections["default"]
    with pointed_to(options={"pool": {"min_size": 0, "max_size": size, "timeout": 30}}):
        pool = wrapper.pool
        try:
            yield pool
        finally:
            wrapper.close_pool()


@contextmanager
def behind_proxy():
    """Worker threads reach the server of the test run through a proxy that the test can cut."""
    proxy = TcpProxy(server_address())
    try:
        with pointed_to(HOST="127.0.0.1", PORT=proxy.port, options={"connect_timeout": 2, "sslmode": "disable"}):
            yield proxy
    finally:
        proxy.close()


@contextmanager
def other_server(server, **more):
    """Point the alias ``default`` of every thread, this one too, to another server, with the tables in it."""
    wrapper = connections["default"]
    there = server.place | more
    before = {key: wrapper.settings_dict[key] for key in there}

    def point_to(place):
        wrapper.close()
        connections.settings["default"].update(place)
        wrapper.settings_dict.update(place)

    point_to(there)
    try:
        call_command("migrate", verbosity=0, run_syncdb=True)
        yield
    finally:
        point_to(before)


@contextmanager
def role_with(**parameters):
    """Sessions that begin inside the block have these server parameters, as far as the server knows them."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE name = ANY (%s)", [list(parameters)])
        known = {name for (name,) in cursor.fetchall()}
        for name in known:
            cursor.execute(f"ALTER ROLE CURRENT_USER SET {name} = '{parameters[name]}'")
    try:
        yield
    finally:
        with connections["default"].cursor() as cursor:
            for name in known:
                cursor.execute(f"ALTER ROLE CURRENT_USER RESET {name}")
