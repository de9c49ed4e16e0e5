"""What clients measured of their own requests, from their logs: what kwsniff's latencies are compared with.

librdkafka writes every request and answer with correlation id, size and round trip (debug=protocol); Java's
NetworkClient logs both with the request's header (times are those of the lines); kafka-python and aiokafka
log them with the correlation id; KafkaJS and franz-go tell instrumentation. What a client does not say is
None.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kwsniff.layout.catalog import load_catalog

_ALIASES = {"apiversion": 18, "listclientmetricsresources": 74}
_TEXTS = frozenset({"software", "client_id"})

_RDKAFKA = re.compile(
    r"^%7\|(?P<at>[\d.]+)\|(?:SEND|RECV)\|(?P<client>.*)#(?P<which>(?:producer|consumer)-\d+)\| \[[^\]]*\]: "
    r"\S+ (?P<did>Sent|Received) (?P<api>\w+?)(?P<kind>Request|Response) "
    r"\(v(?P<version>\d+), (?P<size>\d+) bytes(?: @ \d+)?, CorrId (?P<id>\d+)(?:, rtt (?P<rtt>[\d.]+)ms)?"
)
_STAMP = r"^(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) "
_JAVA_HEADER = (
    r"RequestHeader\(apiKey=(?P<api>\w+), apiVersion=(?P<version>\d+), clientId=(?P<client>[^,]*), "
    r"correlationId=(?P<id>\d+)"
)
_JAVA = re.compile(
    _STAMP + r".*?(?P<did>Sending|Received) \w+ re(?:quest|sponse) .*?with header " + _JAVA_HEADER
)
_OLD_JAVA = re.compile(
    _STAMP + r"(?:\[\w+ clientId=(?P<client>[^,\]]*)[^\]]*\] )?"
    r"(?P<did>Sending|Using older server API v(?P<version>\d+) to send|"
    r"Completed receive from node -?\d+ for) (?P<api>[A-Z_]+) .*?with correlation id (?P<id>\d+)"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A request that was answered, as the client that sent it tells."""

    software: str
    client_id: str | None
    api_key: int
    api_version: int | None
    correlation_id: int | None
    took_us: int  # from sending the request to having the answer, by the client's own clock
    resolution_us: int  # of that clock, or of the log
    request_bytes: int | None  # with the size in front
    response_bytes: int | None


def _key(api: str) -> int:
    """The API of a name as clients write it: ApiVersion, LIST_OFFSETS, FetchRequest_v4."""
    plain = api.lower().replace("_", "")
    keys = {found.name.lower(): found.key for found in load_catalog().apis.values()}
    return _ALIASES.get(plain) or keys[plain]


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def rdkafka(text: str, begin: datetime) -> Iterator[Measured]:
    """Lines that librdkafka wrote; what was sent before `begin` is left out."""
    sent: dict[tuple[str, str, str], list[re.Match[str]]] = {}
    for line in text.splitlines():
        found = _RDKAFKA.match(line)
        if not found:
            continue
        key = found["which"], found["api"], found["id"]
        if found["did"] == "Sent":
            sent.setdefault(key, []).append(found)
            continue
        asked = sent.get(key, [])
        if not asked or found["rtt"] is None:
            continue
        request = asked.pop(0)
        if float(request["at"]) >= begin.timestamp():
            yield Measured(
                software="librdkafka",
                client_id=found["client"],
                api_key=_key(found["api"]),
                api_version=int(found["version"]),
                correlation_id=int(found["id"]),
                took_us=round(float(found["rtt"]) * 1000),
                resolution_us=10,
                request_bytes=int(request["size"]),
                response_bytes=int(found["size"]) + 8,  # it counts what follows the correlation id
            )


def java(text: str) -> Iterator[Measured]:
    """Lines of NetworkClient, of a log whose lines begin with their time."""
    sent: dict[tuple[str | None, str, str], list[tuple[datetime, str | None]]] = {}
    for line in text.splitlines():
        found = _JAVA.match(line) or _OLD_JAVA.match(line)
        if not found:
            continue
        key = found["client"], found["api"], found["id"]
        digits = found["at"].partition(",")[2]
        at = datetime.strptime(found["at"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
        if found["did"].startswith(("Sending", "Using")):
            sent.setdefault(key, []).append((at, found["version"]))
        elif asked := sent.get(key):
            since, version = asked.pop(0)
            yield Measured(
                software="Java",
                client_id=found["client"],
                api_key=_key(found["api"]),
                api_version=_number(version),
                correlation_id=int(found["id"]),
                took_us=round((at - since).total_seconds() * 1_000_000),
                resolution_us=1000 if len(digits) == 3 else 1,
                request_bytes=None,
                response_bytes=None,
            )


def told(line: str) -> Measured | None:
    """A line `request {...}` that a program of ours printed, with the names of Measured."""
    mark, _, text = line.partition(" ")
    if mark != "request":
        return None
    given = json.loads(text)
    names = [field.name for field in fields(Measured)]
    return Measured(**{name: given.get(name) for name in names})


class PythonLog(logging.Handler):
    """Listens to the connections of kafka-python and aiokafka."""

    LOGGERS = ("kafka.net.connection", "aiokafka.conn")

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.measured: list[Measured] = []
        self._sent: dict[Any, list[tuple[float, Any]]] = {}

    def __enter__(self) -> PythonLog:
        for name in self.LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG)
            logging.getLogger(name).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.LOGGERS:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Pairs requests and responses in the order of the log, as both libraries do."""
        said, given = record.msg, record.args
        if not isinstance(given, tuple):
            return
        if said == "%s Request %d: %s":  # kafka-python
            self._sent.setdefault((str(given[0]), given[1]), []).append((record.created, given))
        elif said == "%s: Response %d (%s ms): %s":
            _, (connection, correlation_id, request) = self._sent[str(given[0]), given[1]].pop(0)
            self._add(
                "kafka-python", connection.config["client_id"], request, correlation_id, given[2] * 1000
            )
        elif said == "Request to %s:%d %d: %s":  # aiokafka, whose connections share no log of their own
            self._sent.setdefault(given[:3], []).append((record.created, given))
        elif said == "Response from %s:%d %d: %s":
            sent = self._sent[given[:3]]
            fits = [number for number, (_, asked) in enumerate(sent) if asked[3].API_KEY == given[3].API_KEY]
            at, (*_, correlation_id, request) = sent.pop(fits[0])
            self._add("aiokafka", None, request, correlation_id, (record.created - at) * 1_000_000)

    def _add(
        self, software: str, client_id: str | None, request: Any, correlation_id: Any, took_us: float
    ) -> None:
        key, version = request.API_KEY, request.API_VERSION
        row = Measured(software, client_id, key, version, correlation_id, round(took_us), 1, None, None)
        self.measured.append(row)


@contextmanager
def listening(log: Path, measured: list[Measured], begin: Callable[[], datetime]) -> Iterator[None]:
    """Adds what clients in this process log meanwhile, but what librdkafka sent before `begin()`.

    librdkafka writes to standard error, which goes to `log`.
    """
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with log.open("wb") as file, PythonLog() as python:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)
    measured += python.measured
    measured += rdkafka(log.read_text("utf-8", "replace"), begin())


def written(path: Path, measured: Iterable[Measured]) -> None:
    """Writes rows as tab-separated text; what is not known is empty."""
    names = [field.name for field in fields(Measured)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in measured)


def read(path: Path) -> list[Measured]:
    """Rows back from `written`."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        Measured(**{key: text or None if key in _TEXTS else _number(text) for key, text in row.items()})  # type: ignore[arg-type]
        for row in rows
    ]
