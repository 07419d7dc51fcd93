"""``--health-port``: liveness and readiness over HTTP, from threads of their own, so that busy handlers do not delay
an answer.

``/live`` is 200 as long as the process turns over by itself: a database that is away is no reason to kill it.
``/ready`` is 200 if the jobs database answers, too. Both answer with JSON; anything else is 404.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django_jobs.exceptions import ConfigurationError
from django_jobs.logs import get_logger

from .vitals import Vitals

logger = get_logger("django_jobs.worker")

Look = Callable[[], Vitals]


@contextmanager
def serving_probes(host: str, port: int, look: Look) -> Iterator[int]:
    """Yields the port, which the system chooses if it is 0. ``look`` is called in the server's threads.

    Raises ConfigurationError if the port cannot be had.
    """
    try:
        server = ThreadingHTTPServer((host, port), _handler_for(look))
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"No probes can be served on port {port} of {host}: {error}.") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="django_jobs probes", daemon=True)
    thread.start()
    chosen = int(server.server_address[1])
    logger.info("Probes on port %d: /live and /ready.", chosen)
    try:
        yield chosen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(1.0)


def _handler_for(look: Look) -> type[BaseHTTPRequestHandler]:
    class Probe(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            vitals = look()
            answers = {"/live": vitals.live, "/ready": vitals.live and vitals.ready}
            well = answers.get(self.path)
            self._answer(404 if well is None else 200 if well else 503, vitals.as_dict())

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A probe every second is no news."""

    return Probe
