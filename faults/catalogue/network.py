"""A network that swallows what it is sent, one direction or both. Two workers are behind it, a third is not."""

from urllib.parse import urlsplit, urlunsplit

from faults.app.jobs import record
from faults.arena import Arena
from faults.fault import fault
from tests.tcp_proxy import BOTH, TO_CLIENT, TO_SERVER


@fault("postgresql")
def links_die_to_server(arena: Arena) -> None:
    """Open connections swallow what clients send; new connections work. No run may lose its lease."""
    _links_die(arena, TO_SERVER)


@fault("postgresql")
def links_die_to_client(arena: Arena) -> None:
    """Open connections swallow what the server answers; new connections work. No run may lose its lease."""
    _links_die(arena, TO_CLIENT)


def _links_die(arena: Arena, direction: str) -> None:
    proxy = _start_behind_proxy(arena)
    for _ in arena.rounds(short=1, long=10):
        arena.order(record, seconds=1.5 * arena.lease)
        proxy.cut(direction)
        arena.pause(1.5 * arena.lease)
        _reset(proxy)
        arena.wait_until_recovered()


@fault("postgresql")
def blackhole(arena: Arena) -> None:
    """Nothing comes through in either direction, on new connections either, for two leases: others take over."""
    proxy = _start_behind_proxy(arena)
    behind = [worker.pid for worker in arena.workers[:2]]
    for _ in arena.rounds(short=1, long=10):
        arena.order(record, seconds=1.5 * arena.lease)
        with arena.silence(behind, "cut off"):
            proxy.cut(*BOTH, new=True)
            arena.pause(2 * arena.lease)
            proxy.heal()
            _reset(proxy)
        arena.wait_until_work_goes_on()


def _start_behind_proxy(arena: Arena):
    proxy = arena.proxy()
    place = urlsplit(arena.database.url)
    user = f"{place.netloc.rpartition('@')[0] or 'postgres'}@"
    url = urlunsplit(place._replace(netloc=f"{user}127.0.0.1:{proxy.port}", query="sslmode=disable&connect_timeout=2"))
    arena.start_workers(2, FAULTS_DATABASE=url)
    arena.start_workers(1)
    arena.start_load()
    return proxy


def _reset(proxy) -> None:
    """The firewall is back and knows none of the connections. Without that, handlers would wait for ever."""
    for link in proxy.links:
        if link.swallow:
            link.close()
