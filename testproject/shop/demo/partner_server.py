"""The other companies, played by one HTTP server in a thread. Every request goes into a file, with the answer.

``/hooks/moody`` is down for the first request of each of the first three deliveries. ``/hooks/gone`` has closed for
good. Nobody serves ``/erp``.
"""

from __future__ import annotations

import json
import time
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self

MOODY_DELIVERIES = 3
MOODY_PAUSE = 1  # seconds


class PartnerServer:
    """``with PartnerServer(log) as partners:``; ``partners.url`` is where it listens."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._lock = Lock()
        self._seen: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="partners")
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._log.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, key: str) -> tuple[HTTPStatus, dict[str, Any]]:
        match path.strip("/").split("/"):
            case ["hooks", "gone"]:
                return HTTPStatus.GONE, {}
            case ["hooks", "moody"] if self._is_down_for(key):
                return HTTPStatus.SERVICE_UNAVAILABLE, {}
            case ["hooks", _]:
                return HTTPStatus.OK, {}
            case ["carriers", carrier, "offers", number]:
                return HTTPStatus.OK, _offer(carrier, number)
        return HTTPStatus.NOT_FOUND, {}

    def record(self, **request: Any) -> None:
        with self._lock, self._log.open("a") as log:
            log.write(json.dumps({"at": time.time(), **request}) + "\n")

    def _is_down_for(self, key: str) -> bool:
        with self._lock:
            if key in self._seen or len(self._seen) >= MOODY_DELIVERIES:
                return False
            self._seen.append(key)
            return True

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve({})

            def do_POST(self) -> None:
                self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _serve(self, body: dict[str, Any]) -> None:
                key = self.headers.get("Idempotency-Key", "")
                status, answer = server.answer(self.path, key)
                server.record(method=self.command, path=self.path, key=key, body=body, status=status, answer=answer)
                self._send(status, json.dumps(answer).encode())

            def _send(self, status: HTTPStatus, content: bytes) -> None:
                self.send_response(status)
                if status == HTTPStatus.SERVICE_UNAVAILABLE:
                    self.send_header("Retry-After", str(MOODY_PAUSE))
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """The file has it."""

        return Handler


def _offer(carrier: str, number: str) -> dict[str, Any]:
    """Always the same for one carrier and order."""
    mark = zlib.crc32(f"{carrier} {number}".encode())
    return {"carrier": carrier, "price": 3 + mark % 900 / 100, "tracking_code": f"{carrier[:2].upper()}{mark}"}
