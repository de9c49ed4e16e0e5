"""TLS connections that are not decrypted, from rows of the table connections."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.view.columns import texts

_TLS = ENUMS["protocol"].index("tls")
_NAMES = tuple(name for name, _, _ in COLUMNS["connections"])


class Closed(NamedTuple):
    """Connections of one kind: to a broker by name or address."""

    broker: str
    port: int
    version: str | None
    """TLS version; None without a ServerHello."""
    unanswered: bool
    """A ClientHello got no ServerHello, although packets of the broker were captured without gaps."""
    midway: bool
    """Neither hello was captured."""


def ports_of(columns: Sequence[Any]) -> set[int]:
    """Ports of both sides of the connections."""
    by_name = dict(zip(_NAMES, columns, strict=True))
    return {
        port
        for side in ("client", "broker")
        for port in memoryview(by_name[f"{side}_port"][4]).cast("B").cast("i")
    }


def closed_connections(columns: Sequence[Any]) -> "Counter[Closed]":
    """Connections without keys, and ClientHellos without a response."""
    by_name = dict(zip(_NAMES, columns, strict=True))
    protocols = memoryview(by_name["protocol"][4]).cast("B")
    ports = memoryview(by_name["broker_port"][4]).cast("B").cast("i")
    greeted = memoryview(by_name["tls_hello"][4]).cast("B")
    packets, missing = (
        memoryview(by_name[name][4]).cast("B").cast("q")
        for name in ("broker_packets", "broker_missing_bytes")
    )
    wanted = ("tls_server_name", "broker_address", "tls_version", "tls_cipher")
    rows = zip(*(texts(by_name[name]) for name in wanted), strict=True)
    return Counter(
        Closed(
            name or address or "",
            ports[row],
            version,
            bool(greeted[row >> 3] >> (row & 7) & 1 and packets[row] and not missing[row] and cipher is None),
            not greeted[row >> 3] >> (row & 7) & 1 and cipher is None,
        )
        for row, (name, address, version, cipher) in enumerate(rows)
        if protocols[row] == _TLS
    )
