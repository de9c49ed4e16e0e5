"""Calls that may match filters, from the core's rows of api_calls: before messages are decoded.

Calls left out here cannot match; Filters decides on the others after decoding.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import RESPONSE, Field
from kwsniff.view.columns import nullable, numbers, texts, words
from kwsniff.view.filters import Filters
from kwsniff.view.internal_topics import INTERNAL_TOPICS

_NAMES: Final = tuple(name for name, _, _ in COLUMNS["api_calls"])
_ENDED: Final = Struct("=qq")
_ID_TEXT: Final = 22
_METADATA_LOG_ID: Final = bytes(15) + b"\x01"


class Ended(NamedTuple):
    """Values of api_calls rows of completed calls."""

    calls: bytes
    """For Analyzer.take_messages."""
    statuses: dict[int, tuple[str, str | None]]
    """Status and reason of calls that may match."""


class Selection:
    """Filters, as far as rows can decide them."""

    def __init__(self, filters: Filters, catalog: Catalog) -> None:
        self._filters = filters
        self._catalog = catalog
        rows = (filters.calls, filters.min_latency_ns, filters.statuses, filters.errors, filters.apis)
        self.alone = all(each in (None, frozenset()) for each in rows)
        """Whether messages without a call may match."""
        self.looks_inside = filters.group is not None or filters.topic is not None
        """Whether matching needs more than rows."""
        self._holds_schemas = lru_cache(self._looks_for_schemas)

    def over(self, columns: Sequence[Any]) -> Ended:
        """Rows of api_calls, as returned by Analyzer.take."""
        by_name = dict(zip(_NAMES, columns, strict=True))
        ids = numbers(by_name["call_id"])
        fits = self._fitting(by_name, ids)
        calls = b"".join(map(_ENDED.pack, ids, fits)) if any(fits) else _none_of(ids)
        wanted = [row for row, one in enumerate(fits) if one]
        reasons = words(by_name["reason"], "reason", wanted)
        statuses = words(by_name["status"], "status", wanted)
        told = zip(wanted, statuses, reasons, strict=True)
        return Ended(calls, {ids[row]: (status or "", reason) for row, status, reason in told})

    def needles(self, names: Mapping[str, str]) -> list[bytes] | None:
        """Byte strings, one of which must be in a message of a matching call; None: no such condition.
        `names`: topic
        id -> name."""
        filters = self._filters
        wanted = filters.group if filters.group is not None else filters.topic
        if not wanted or not wanted.isprintable() or "\ufffd" in wanted:
            return None
        found = [wanted.encode("utf-8", "surrogatepass")]
        inside = {*INTERNAL_TOPICS}  # their records may be compressed
        if filters.group is None:
            inside.add(wanted)
            found += _raw_id(wanted)
        found += [name.encode() for name in INTERNAL_TOPICS]
        return [
            *found,
            _METADATA_LOG_ID,
            *(raw for key, name in names.items() if name in inside for raw in _raw_id(key)),
        ]

    def _fitting(self, columns: Mapping[str, Any], ids: "memoryview[int]") -> bytearray:
        fits = bytearray(b"\x01") * len(ids)
        filters = self._filters
        if filters.calls is not None:
            _keep(fits, (number in filters.calls for number in ids))
        if filters.apis:
            _keep(fits, (key in filters.apis for key in nullable(columns["api_key"])))
        if filters.min_latency_ns is not None:
            least = filters.min_latency_ns
            _keep(fits, (one is not None and one >= least for one in nullable(columns["latency_ns"])))
        if filters.statuses:
            places = {place for place, word in enumerate(ENUMS["status"]) if word in filters.statuses}
            _keep(fits, (place in places for place in memoryview(columns["status"][4]).cast("B")))
        if filters.errors and 0 not in filters.errors:
            _keep(fits, self._may_fail(columns))
        if filters.connection is not None:
            _keep(fits, self._match_connections(columns))
        if filters.client is not None:
            _keep(fits, self._name(columns, filters.client))
        if filters.client_is is not None:
            names = texts(columns["client_id"])
            _keep(fits, (name is None or name == filters.client_is for name in names))
        return fits

    def _may_fail(self, columns: Mapping[str, Any]) -> Iterator[bool]:
        """Whether a response may have an error that the core did not see, for example inside a bytes
        field."""
        keys = nullable(columns["api_key"])
        for count, key in zip(nullable(columns["error_count"]), keys, strict=True):
            yield count != 0 or self._holds_schemas(key)

    def _looks_for_schemas(self, key: int | None) -> bool:
        message = None if key is None else self._catalog.message(key, RESPONSE)
        return message is None or _has_schemas(message.fields)

    def _match_connections(self, columns: Mapping[str, Any]) -> Iterator[bool]:
        wanted = self._filters.connection
        ends = [
            (texts(columns[f"{side}_address"]), nullable(columns[f"{side}_port"]))
            for side in ("client", "broker")
        ]
        for row, number in enumerate(numbers(columns["connection_id"])):
            yield str(number) == wanted or any(
                wanted in (f"{address[row]}:{port[row]}", f"[{address[row]}]:{port[row]}")
                for address, port in ends
            )

    @staticmethod
    def _name(columns: Mapping[str, Any], wanted: str) -> Iterator[bool]:
        part = wanted.lower()
        address = texts(columns["client_address"])
        port = nullable(columns["client_port"])
        for row, name in enumerate(texts(columns["client_id"])):
            ends = (f"{address[row]}", f"{address[row]}:{port[row]}", f"[{address[row]}]:{port[row]}")
            yield name is None or part in name.lower() or wanted in ends


def _keep(fits: bytearray, also: Iterator[bool]) -> None:
    for row, one in enumerate(also):
        if not one:
            fits[row] = 0


def _none_of(ids: "memoryview[int]") -> bytes:
    both = [0] * (2 * len(ids))
    both[::2] = ids
    return Struct(f"={len(both)}q").pack(*both)


def _raw_id(text: str) -> list[bytes]:
    """The bytes of a topic id."""
    if len(text) != _ID_TEXT:
        return []
    try:
        return [urlsafe_b64decode(f"{text}==")]
    except ValueError:
        return []


def _has_schemas(fields: Sequence[Field]) -> bool:
    return any(field.meaning is Meaning.SCHEMA or _has_schemas(field.children) for field in fields)
