"""A network that swallows what it is sent: some workers are behind a proxy, others are not."""

from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

from faults.arena import Arena
from faults.fault import fault
from tests.tcp_proxy import BOTH, TO_CLIENT, TO_SERVER, TcpProxy

# A call waits five seconds for its answer before its connection counts as dead, and then the lease is renewed.
LEASE_ABOVE_PATIENCE = 10


@fault("postgresql")
def dead_links(arena: Arena) -> None:
    """The open connections of one worker swallow what it sends, those of another what it is answered; new connections
    work. No run may lose its lease.
    """
    arena.use_lease(LEASE_ABOVE_PATIENCE)
    proxies = {arena.proxy(): direction for direction in (TO_SERVER, TO_CLIENT)}
    behind = _start_behind(arena, proxies)
    arena.start_workers(1)
    arena.start_load()
    for _ in arena.rounds(short=1, long=10):
        arena.order_long_runs_on(behind, 1.2 * arena.lease)
        for proxy, direction in proxies.items():
            proxy.cut(direction)
        arena.pause(1.2 * arena.lease)
        for proxy in proxies:
            _reset(proxy)
        arena.wait_until_recovered()


@fault("postgresql")
def blackhole(arena: Arena) -> None:
    """For two leases, and on new connections too, nothing comes through from one worker, nothing to another, neither
    for a third: a fourth takes over.
    """
    proxies = {arena.proxy(): directions for directions in ([TO_SERVER], [TO_CLIENT], BOTH)}
    behind = _start_behind(arena, proxies)
    arena.start_workers(1)
    arena.start_load()
    for _ in arena.rounds(short=1, long=10):
        arena.order_long_runs_on(behind, 1.5 * arena.lease)
        with arena.silence(behind, "cut off"):
            for proxy, directions in proxies.items():
                proxy.cut(*directions, new=True)
            arena.pause(2 * arena.lease)
            for proxy in proxies:
                proxy.heal()
                _reset(proxy)
        arena.wait_until_work_goes_on()
        arena.wait_until_nothing_is_suspect()


def _start_behind(arena: Arena, proxies: Iterable[TcpProxy]) -> list[int]:
    """A worker behind each."""
    urls = [_through(proxy, arena.database.url) for proxy in proxies]
    return [worker.pid for url in urls for worker in arena.start_workers(1, FAULTS_DATABASE=url)]


def _through(proxy: TcpProxy, url: str) -> str:
    place = urlsplit(url)
    user = place.netloc.rpartition("@")[0] or "postgres"
    netloc = f"{user}@127.0.0.1:{proxy.port}"
    return urlunsplit(place._replace(netloc=netloc, query="sslmode=disable&connect_timeout=2"))


def _reset(proxy: TcpProxy) -> None:
    """The firewall is back and knows none of the connections. Without that, handlers would wait for ever."""
    for link in proxy.links:
        if link.swallow:
            link.close()
