"""Prometheus' text format over HTTP: calls, errors and latency histograms by API, client and topic.

Label values come from the wire, so their number and length are bounded: of every label the first
`MOST_SERIES` values are told apart, all later ones are counted as "other"; of a long value there is the
beginning and a hash. A call without a client id has the empty label.

Whoever can reach the port can ask, and costs little: connections at a time and their seconds are bounded. A
port of this machine alone answers only who calls it by its own name, which a page in a browser here does not.
"""

import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final, Self
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from kwsniff.errors import UsageError
from kwsniff.live.session import Batches, Progress
from kwsniff.live.watch import Held
from kwsniff.live.window import active_latencies, endpoint, topics_of
from kwsniff.tables.arrays import Numbers, numbers
from kwsniff.tables.grouping import Groups
from kwsniff.texts import clean

MOST_SERIES: Final = 200
LONGEST_LABEL: Final = 120
MOST_CONNECTIONS: Final = 16
OTHER: Final = "other"
_MOST_PAIRS: Final = 5 * MOST_SERIES
EDGES_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper edges of the latency histograms, in seconds."""

_EDGES_NS = np.array([round(edge * 1e9) for edge in EDGES_S], np.int64)
_PATIENCE_S = 10.0  # for a scraper that asks nothing, or does not read
_LONGEST_S = 30.0  # of a connection, whatever it does
_SHORT_LABEL = 96
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class _Histogram:
    __slots__ = ("buckets", "total_ns")

    def __init__(self) -> None:
        self.buckets = np.zeros(len(EDGES_S) + 1, np.int64)
        self.total_ns = 0

    def add(self, latencies: Numbers) -> None:
        places = np.searchsorted(_EDGES_NS, latencies, side="left")
        self.buckets += np.bincount(places, minlength=len(self.buckets))
        self.total_ns += int(latencies.sum())


class _Labels:
    """The values of one label that are told apart."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def bounded(self, value: Any) -> str:
        text = "" if value is None else _shortened(clean(str(value)))
        if text not in self._known:
            if len(self._known) >= MOST_SERIES:
                return OTHER
            self._known.add(text)
        return text


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_LABEL:
        return text
    return f"{text[:_SHORT_LABEL]}… ({blake2b(text.encode(), digest_size=6).hexdigest()})"


class Metrics:
    """Counts batches as they come; `text` may be called by any thread."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._labels = {name: _Labels() for name in ("api", "client", "topic", "error", "broker")}
        self._calls: dict[Labels, int] = {}
        self._errors: dict[Labels, int] = {}
        self._told: dict[str, dict[Labels, int]] = {"client": {}, "broker": {}}
        self._statuses: dict[Labels, int] = {}
        self._latencies: dict[str, dict[Labels, _Histogram]] = {"api": {}, "client": {}, "topic": {}}
        self._topic_calls: dict[Labels, int] = {}
        self._rebalances = 0
        self._held: Sequence[Held] = ()
        self._progress: Progress | None = None

    def add(self, batches: Batches, progress: Progress) -> None:
        """Rows of one interval."""
        with self._turn:
            self._progress = progress
            if "api_calls" in batches:
                self._add_calls(batches["api_calls"], active_latencies(batches))
            if "error_codes" in batches:
                groups = Groups(batches["error_codes"], ("error_name", "error_code", "api_name"))
                for (name, code, api), number in zip(groups.labels(), groups.counts(), strict=True):
                    key = (self._bounded("error", name or code), self._bounded("api", api))
                    self._errors[key] = self._errors.get(key, 0) + int(number)
                self._add_told(batches["error_codes"])
            if "groups" in batches:
                self._rebalances += batches["groups"].num_rows

    def hold(self, held: Sequence[Held]) -> None:
        """The findings that hold now; those of before are no longer told."""
        with self._turn:
            self._held = held

    def _bounded(self, label: str, value: Any) -> str:
        return self._labels[label].bounded(value)

    def _add_told(self, batch: pa.RecordBatch) -> None:
        columns = ("error_name", "error_code", "client_id", "broker_address", "broker_port")
        groups = Groups(batch, columns)
        for (name, code, client, address, port), number in zip(groups.labels(), groups.counts(), strict=True):
            error = self._bounded("error", name or code)
            for side, value in (("client", client), ("broker", endpoint(address, port))):
                key = (error, self._bounded(side, value))
                if key not in self._told[side] and len(self._told[side]) >= _MOST_PAIRS:
                    key = (OTHER, OTHER)
                self._told[side][key] = self._told[side].get(key, 0) + int(number)

    def _add_calls(self, batch: pa.RecordBatch, latency: Numbers) -> None:
        _tally(self._statuses, batch, {"status": None}, self._labels)
        _tally(self._calls, batch, {"api_name": "api", "client_id": "client"}, self._labels)
        for label, column in (("api", "api_name"), ("client", "client_id")):
            groups = Groups(batch, (column,))
            known = numbers(pa.int64(), latency, latency >= 0)
            for (value,), latencies in zip(groups.labels(), groups.split(known), strict=True):
                self._time(label, value, latencies)
        rows, places, words = topics_of(batch)
        latency = latency[rows]
        for number in np.unique(places):
            key = (self._bounded("topic", words[number]),)
            chosen = latency[places == number]
            self._topic_calls[key] = self._topic_calls.get(key, 0) + len(chosen)
            self._time("topic", words[number], chosen[chosen >= 0])

    def _time(self, label: str, value: Any, latencies: Numbers) -> None:
        if len(latencies):
            key = (self._bounded(label, value),)
            self._latencies[label].setdefault(key, _Histogram()).add(latencies)

    def text(self) -> str:
        """Everything, in Prometheus' text format 0.0.4."""
        with self._turn:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _family("calls_total", "counter", "Calls that came to an end.")
        yield from _samples("calls_total", ("api", "client"), self._calls)
        yield from _family("topic_calls_total", "counter", "Calls that name the topic.")
        yield from _samples("topic_calls_total", ("topic",), self._topic_calls)
        yield from _family("call_status_total", "counter", "Calls by how they ended.")
        yield from _samples("call_status_total", ("status",), self._statuses)
        yield from _family("error_codes_total", "counter", "Error codes in responses, at whatever depth.")
        yield from _samples("error_codes_total", ("error", "api"), self._errors)
        for side, told in self._told.items():
            yield from _family(f"{side}_error_codes_total", "counter", f"The same by {side}.")
            yield from _samples(f"{side}_error_codes_total", ("error", side), told)
        yield from _family("rebalances_total", "counter", "Rebalances of groups.")
        yield f"kwsniff_rebalances_total {self._rebalances}"
        yield from _family("finding", "gauge", "1 for each finding that holds now.")
        found: dict[Labels, int] = {
            (each.finding.finding, _shortened(clean(each.finding.subject))): 1 for each in self._held
        }
        yield from _samples("finding", ("finding", "subject"), found)
        for label, histograms in self._latencies.items():
            name = f"{label}_latency_seconds"
            yield from _family(name, "histogram", f"Time of calls without deliberate waits, by {label}.")
            for (value,), histogram in histograms.items():
                yield from _histogram(name, f'{label}="{_escaped(value)}"', histogram)
        if self._progress:
            yield from _progress_lines(self._progress)


def _tally(
    into: dict[Labels, int],
    batch: pa.RecordBatch,
    columns: Mapping[str, str | None],
    labels: Mapping[str, _Labels],
) -> None:
    groups = Groups(batch, tuple(columns))
    for values, number in zip(groups.labels(), groups.counts(), strict=True):
        key = tuple(
            str(value) if label is None else labels[label].bounded(value)
            for label, value in zip(columns.values(), values, strict=True)
        )
        if len(columns) > 1 and key not in into and len(into) >= _MOST_PAIRS:
            key = tuple(OTHER for _ in key)  # each label is bounded, their combinations are as well
        into[key] = into.get(key, 0) + int(number)


def _family(name: str, kind: str, says: str) -> Iterator[str]:
    yield f"# HELP kwsniff_{name} {says}"
    yield f"# TYPE kwsniff_{name} {kind}"


def _samples(name: str, labels: Labels, values: Mapping[Labels, int]) -> Iterator[str]:
    for key, number in values.items():
        pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, key, strict=True))
        yield f"kwsniff_{name}{{{pairs}}} {number}"


def _histogram(name: str, pair: str, histogram: _Histogram) -> Iterator[str]:
    running = np.cumsum(histogram.buckets).tolist()
    for edge, count in zip((*map(repr, EDGES_S), "+Inf"), running, strict=True):
        yield f'kwsniff_{name}_bucket{{{pair},le="{edge}"}} {count}'
    yield f"kwsniff_{name}_sum{{{pair}}} {histogram.total_ns / 1e9!r}"
    yield f"kwsniff_{name}_count{{{pair}}} {running[-1]}"


def _progress_lines(progress: Progress) -> Iterator[str]:
    yield from _family("packets_total", "counter", "Packets read.")
    yield f"kwsniff_packets_total {progress.packets}"
    yield from _family("capture_bytes_total", "counter", "Bytes of the capture read.")
    yield f"kwsniff_capture_bytes_total {progress.capture_bytes}"
    yield from _family("waiting_calls", "gauge", "Requests that wait for their response.")
    yield f"kwsniff_waiting_calls {progress.waiting_calls}"
    yield from _family(
        "oldest_wait_seconds", "gauge", "How long the first answer is due; a Fetch may wait for data."
    )
    yield f"kwsniff_oldest_wait_seconds {(progress.oldest_wait_ns or 0) / 1e9!r}"
    if progress.dropped_by_kernel is not None:
        yield from _family("kernel_dropped_packets_total", "counter", "Packets the kernel dropped.")
        yield f"kwsniff_kernel_dropped_packets_total {progress.dropped_by_kernel}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own; beyond MOST_CONNECTIONS it is hung up at once."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers, and hangs up after _LONGEST_S, whatever the other side does."""
        deadline = threading.Timer(_LONGEST_S, _hang_up, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a scraper that hangs up in the middle, as one does whose time is over."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer:
    """Answers GET /metrics while the block runs. `port` 0 takes any free one; `address` says which."""

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        try:
            self._server = _Server((host, port), _handler(metrics))
        except OSError as error:
            raise UsageError(
                f"--metrics: {host} port {port} cannot be listened on ({error.strerror}); try another port"
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
    """Whether a request names this machine, where only this machine is listened to.

    A page whose name was made to lead here names another.
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


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_GET(self) -> None:
            address: Any = self.server.server_address
            if not _is_called(self.headers.get("Host"), address[0]):
                self.send_error(421, "Misdirected Request", "ask for it by an address of this machine")
                return
            found = self.path.split("?")[0] in ("/metrics", "/")
            body = metrics.text().encode() if found else b"see /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", _CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the screen belongs to the view."""

    return Handler
