"""Filters of calls: first by facts from the capture, before decoding, then by content."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from kwsniff.core.declared import ENUMS
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.texts import suggest
from kwsniff.view.call import DecodedCall
from kwsniff.view.capture import Call
from kwsniff.view.inner import leaves
from kwsniff.view.tree import Value

_UNITS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m)")

ANY_ERROR: Final = None
"""Means every error code but 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """A call must match all given filters; None and empty match every call.

    ``client`` is part of a client id, or an address, or address:port; ``client_is`` the whole of a client id,
    or the address of a client without one. ``connection`` is a number, or one
    end's address:port. ``errors`` has error codes, or ANY_ERROR; ``statuses`` words of the list of statuses.
    """

    calls: frozenset[int] | None = None
    apis: frozenset[int] = frozenset()
    client: str | None = None
    client_is: str | None = None
    topic: str | None = None
    group: str | None = None
    errors: frozenset[int | None] = frozenset()
    connection: str | None = None
    min_latency_ns: int | None = None
    statuses: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether every call matches."""
        return self == Filters()

    @property
    def looks_inside(self) -> bool:
        """Whether matching needs decoded messages."""
        return bool(self.errors) or any(
            wanted is not None for wanted in (self.client, self.client_is, self.topic, self.group)
        )

    def fits(self, call: Call) -> bool:
        """Matches by facts known before decoding. ``client`` may still be a client id."""
        packet = call.packets[0]
        if self.calls is not None and call.id not in self.calls:
            return False
        if self.statuses and call.status not in self.statuses:
            return False
        if self.apis and packet["api_key"] not in self.apis:
            return False
        if self.connection is not None and self.connection not in (
            str(packet["connection_id"]),
            *_endpoints(packet["client_address"], packet["client_port"]),
            *_endpoints(packet["broker_address"], packet["broker_port"]),
        ):
            return False
        if self.min_latency_ns is None:
            return True
        latency = call.response["latency_ns"] if call.response else None
        return latency is not None and latency >= self.min_latency_ns

    def fits_inside(self, decoded: DecodedCall, topics: dict[str, str]) -> bool:
        """Matches by the content of messages. ``topics``: topic id -> name."""
        if self.client is not None and not self._fits_client(decoded):
            return False
        if self.client_is is not None and self.client_is != _name_of(decoded):
            return False
        if self.errors and not self._fits_error(decoded):
            return False
        if self.group is not None and not _has(
            decoded, {Meaning.GROUP, Meaning.COORDINATOR_KEY}, {self.group}
        ):
            return False
        if self.topic is None:
            return True
        names: set[Value] = {self.topic, *(key for key, name in topics.items() if name == self.topic)}
        return _has(decoded, {Meaning.TOPIC, Meaning.TOPIC_ID}, names)

    def _fits_client(self, decoded: DecodedCall) -> bool:
        packet = decoded.call.packets[0]
        if self.client in _endpoints(packet["client_address"], packet["client_port"], alone=True):
            return True
        name = _client_id(decoded)
        return name is not None and (self.client or "").lower() in name.lower()

    def _fits_error(self, decoded: DecodedCall) -> bool:
        response = decoded.message("response")
        if response is None:
            return False
        for field, value in leaves(response.tree, response.found_inside()):
            if field.meaning is Meaning.ERROR and (
                value in self.errors or (value != 0 and ANY_ERROR in self.errors)
            ):
                return True
        return False


def _has(decoded: DecodedCall, meanings: set[Meaning], wanted: set[Value]) -> bool:
    for part in decoded.parts:
        if part.message is None:
            continue
        for field, value in leaves(part.message.tree, part.message.found_inside()):
            if field.meaning in meanings:
                for one in value if isinstance(value, list) else (value,):
                    if one in wanted:
                        return True
    return False


def _client_id(decoded: DecodedCall) -> str | None:
    request = decoded.message("request")
    for child in request.header.children if request and request.header else ():
        if child.name == "client_id" and isinstance(child.value, str):
            return child.value
    return None


def _name_of(decoded: DecodedCall) -> str:
    """The name of a client in findings: its id, else its address."""
    name = _client_id(decoded)
    return str(decoded.call.packets[0]["client_address"]) if name is None else name


def _endpoints(address: str, port: int, *, alone: bool = False) -> tuple[str, ...]:
    both = (f"{address}:{port}", f"[{address}]:{port}")
    return (address, *both) if alone else both


def parse_apis(texts: Sequence[str], catalog: Catalog) -> frozenset[int]:
    """API keys of names or numbers; a number need not be a known key. Raises UsageError."""
    keys = set()
    for text in texts:
        api = catalog.api(text)
        if api is None and not text.strip().isdecimal():
            near = get_close_matches(text, [one.name for one in catalog.apis.values()], 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "kwsniff explain apis lists them"
            raise UsageError(f"unknown API '{text}': {hint}")
        keys.add(api.key if api else int(text))
    return frozenset(keys)


def parse_errors(texts: Sequence[str], catalog: Catalog) -> frozenset[int | None]:
    """Error codes of names or numbers, ANY_ERROR of `any`. Raises UsageError."""
    by_name = {error.name: code for code, error in catalog.errors.items()}
    codes: set[int | None] = set()
    for text in texts:
        name = text.strip().upper().replace("-", "_")
        if name == "ANY":
            codes.add(ANY_ERROR)
        elif re.fullmatch(r"-?\d{1,5}", text.strip()):
            codes.add(int(text))
        elif name in by_name:
            codes.add(by_name[name])
        else:
            near = get_close_matches(name, by_name, 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "kwsniff explain errors lists them"
            raise UsageError(f"unknown error '{text}': {hint}")
    return frozenset(codes)


def parse_statuses(texts: Sequence[str]) -> frozenset[str]:
    """Statuses by name. Raises UsageError."""
    found = [text.strip().lower().replace("-", "_") for text in texts]
    for name in found:
        if name not in ENUMS["status"]:
            raise UsageError(f"unknown status '{name}'; {suggest(name, ENUMS['status'])}")
    return frozenset(found)


def parse_duration(text: str) -> int:
    """Nanoseconds of a text like 10ms or 1.5s. Raises UsageError."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(
            f"'{text}' is not a duration: give a number and ns, us, ms, s or m, for example 10ms"
        )
    return round(float(match[1]) * _UNITS[match[2]])
