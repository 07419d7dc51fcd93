"""A network that swallows what it is sent: some workers are behind a proxy, others are not."""

from urllib.parse import urlsplit, urlunsplit

from faults.app.jobs import record
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
    for proxy in proxies:
        arena.start_workers(1, FAULTS_DATABASE=_through(proxy, arena.database.url))
    arena.start_workers(1)
    arena.start_load()
    for _ in arena.rounds(short=1, long=10):
        arena.order(record, seconds=1.2 * arena.lease)
        for proxy, direction in proxies.items():
            proxy.cut(direction)
        arena.pause(1.2 * arena.lease)
        for proxy in proxies:
            _reset(proxy)
        arena.wait_until_recovered()


@fault("postgresql")
def blackhole(arena: Arena) -> None:
    """Nothing comes through to two of three workers for two leases, on new connections either: others take over."""
    proxy = arena.proxy()
    behind = arena.start_workers(2, FAULTS_DATABASE=_through(proxy, arena.database.url))
    arena.start_workers(1)
    arena.start_load()
    for _ in arena.rounds(short=1, long=10):
        arena.order(record, seconds=1.5 * arena.lease)
        with arena.silence([worker.pid for worker in behind], "cut off"):
            proxy.cut(*BOTH, new=True)
            arena.pause(2 * arena.lease)
            proxy.heal()
            _reset(proxy)
        arena.wait_until_work_goes_on()


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
