"""A TCP proxy that fails as networks do: silently.

It stands on a free port of 127.0.0.1 in front of a server, on a Unix socket or on TCP. Links that are cut stay open
and acknowledge what they are sent, as behind a firewall that forgot them, or a proxy that hangs: no keepalive notices.
"""

import socket
import threading
from contextlib import suppress

Address = str | tuple[str, int]

TO_SERVER, TO_CLIENT = "to the server", "to the client"
BOTH = (TO_SERVER, TO_CLIENT)


class Link:
    """One connection through the proxy. ``swallow``: the directions in which nothing arrives any more."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.sockets = (client, server)
        self.swallow: set[str] = set()
        self.threads = [
            threading.Thread(target=self._pump, args=[client, server, TO_SERVER], name="proxy", daemon=True),
            threading.Thread(target=self._pump, args=[server, client, TO_CLIENT], name="proxy", daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def _pump(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if direction not in self.swallow:
                    target.sendall(data)
        if not self.swallow:
            self.close()

    def close(self) -> None:
        for end in self.sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class TcpProxy:
    """``address``: the server's, a path or a pair of host and port. Clients connect to ``port``."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.links: list[Link] = []
        self.swallow_new: set[str] = set()
        self.refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.refusing:
                    client.close()
                    continue
                link = Link(client, self._connect())
                link.swallow |= self.swallow_new
                self.links.append(link)

    def _connect(self) -> socket.socket:
        if isinstance(self.address, tuple):
            return socket.create_connection(self.address)
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.address)
        return server

    def cut(self, *directions: str, new: bool = False) -> None:
        """Swallow what is sent on the links there are; with ``new`` also on those to come."""
        for link in self.links:
            link.swallow |= set(directions)
        if new:
            self.swallow_new = set(directions)

    def heal(self) -> None:
        """Links to come work; those that were cut stay so."""
        self.swallow_new = set()
        self.refusing = False

    def refuse(self) -> None:
        """Drop every link, and each new one at once."""
        self.refusing = True
        for link in self.links:
            link.close()

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)
        for link in self.links:
            link.close()
