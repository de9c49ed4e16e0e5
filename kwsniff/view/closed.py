"""TLS connections whose contents stay closed, as rows of the table connections tell them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kwsniff.core.declared import COLUMNS, ENUMS

_TLS = ENUMS["protocol"].index("tls")
_NAMES = tuple(name for name, _, _ in COLUMNS["connections"])


def closed_connections(columns: Sequence[Any]) -> "Counter[tuple[str, int, str | None]]":
    """(broker by name or address, port, TLS version) -> connections without keys."""
    by_name = dict(zip(_NAMES, columns, strict=True))
    protocols = memoryview(by_name["protocol"][4]).cast("B")
    ports = memoryview(by_name["broker_port"][4]).cast("B").cast("i")
    texts = ("tls_server_name", "broker_address", "tls_version")
    rows = zip(*(_texts(by_name[name]) for name in texts), strict=True)
    return Counter(
        (name or address or "", ports[row], version)
        for row, (name, address, version) in enumerate(rows)
        if protocols[row] == _TLS
    )


def _texts(column: Sequence[Any]) -> Iterator[str | None]:
    """Values of a dictionary-coded column."""
    _, rows, _, validity, indices, offsets, data, _ = column
    valid = None if validity is None else memoryview(validity).cast("B")
    places = memoryview(indices).cast("B").cast("i")
    ends = memoryview(offsets).cast("B").cast("i")
    text = bytes(data)
    for row in range(rows):
        if valid is not None and not valid[row >> 3] >> (row & 7) & 1:
            yield None
        else:
            place = places[row]
            yield text[ends[place] : ends[place + 1]].decode()
