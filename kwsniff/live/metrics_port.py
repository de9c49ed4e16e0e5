"""The metrics over HTTP: GET, HEAD and OPTIONS of /metrics and /healthz, gzip and OpenMetrics on request.

The port has no authentication. The number and duration of connections are limited, to keep the load low. A
loopback port accepts only requests with a loopback name in their Host header, which blocks DNS rebinding by
pages in a local browser.
"""

import gzip
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final, Self
from urllib.parse import urlsplit

from kwsniff.errors import UsageError
from kwsniff.live.metrics import Metrics

MOST_CONNECTIONS: Final = 16
_PATIENCE_S = 10.0  # for a scraper that sends nothing, or does not read
_LONGEST_S = 30.0  # of a connection, in any case
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ALLOWED = "GET, HEAD, OPTIONS"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Each in its own thread; beyond MOST_CONNECTIONS the server closes a connection immediately."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Responds, and closes the connection after _LONGEST_S in any case."""
        deadline = threading.Timer(_LONGEST_S, _hang_up, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores scrapers that close early, as they do after a timeout."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer:
    """Serves while the block runs. `port` 0 takes any free port, see `address`. `trouble`: the problem that
    /healthz reports, None if there is none."""

    def __init__(
        self, metrics: Metrics, host: str, port: int, trouble: Callable[[], str | None] = lambda: None
    ) -> None:
        try:
            self._server = _Server((host, port), _handler(metrics, trouble))
        except OSError as error:
            raise UsageError(
                f"--metrics: cannot listen on {host} port {port} ({error.strerror}); try another port"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kwsniff-metrics", daemon=True
        )

    @property
    def address(self) -> str:
        """host:port."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _is_called(name: str | None, own: Any) -> bool:
    """Whether the Host header names this machine, on a loopback address; always true on others.

    A page that uses DNS rebinding sends another name.
    """
    if not _is_loopback(str(own)):
        return True
    host = urlsplit(f"//{name or ''}").hostname or ""
    return name is None or host == "localhost" or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    metrics: Metrics
    trouble: Callable[[], str | None]

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_OPTIONS(self) -> None:
        if self._is_called():
            self._send(204, b"", "")

    def _is_called(self) -> bool:
        address: Any = self.server.server_address
        if _is_called(self.headers.get("Host"), address[0]):
            return True
        self.send_error(421, "Misdirected Request", "use a loopback address of this machine")
        return False

    def _answer(self) -> None:
        if not self._is_called():
            return
        path = self.path.split("?")[0]
        if path in ("/metrics", "/"):
            openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
            kind = _OPENMETRICS if openmetrics else _PLAIN
            self._send(200, self.metrics.text(openmetrics=openmetrics).encode(), kind)
        elif path == "/healthz":
            wrong = type(self).trouble()
            self._send(503 if wrong else 200, f"{wrong or 'ok'}\n".encode(), _PLAIN)
        else:
            self._send(404, b"see /metrics and /healthz\n", _PLAIN)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        packed = len(body) > 1000 and _takes_gzip(self.headers.get("Accept-Encoding", ""))
        body = gzip.compress(body, 1) if packed else body
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
            self.send_header("Vary", "Accept, Accept-Encoding")
            self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Allow", _ALLOWED)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No log: the screen belongs to the view."""


def _handler(metrics: Metrics, trouble: Callable[[], str | None]) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"metrics": metrics, "trouble": staticmethod(trouble)})


def _takes_gzip(accepted: str) -> bool:
    words = [each.replace(" ", "").lower() for each in accepted.split(",")]
    return any(word == "gzip" or (word.startswith("gzip;") and word != "gzip;q=0") for word in words)
