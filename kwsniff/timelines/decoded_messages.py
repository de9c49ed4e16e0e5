"""Messages that timelines decode fully: those of layouts with the trait `detail`.

The core delivers their bytes with api_calls, each distinct message once; they are rare, and decoded like
messages for display.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, numbers, whole_numbers
from kwsniff.tables.compute import filter_rows, take_rows

BYTES: Final = ("request", "response")
PLACE: Final = "place"
"""The position of a call: the number of its row, or of the packet that ended it."""
_NO_CORRELATION: Final = bytes(4)
_SHORT_MESSAGE: Final = 4096
"""Maximum size of a message that is cached, because it may repeat."""

Fields = Mapping[str, Any]


def with_details(
    calls: pa.RecordBatch, details: pa.RecordBatch | None, chosen: Bits, columns: Sequence[str]
) -> pa.RecordBatch:
    """Some columns of the selected calls and of those with kept bytes, with the bytes and PLACE."""
    found = np.full(calls.num_rows, -1, np.int64)
    if details is not None:
        found[whole_numbers(details["row"], null=0)] = np.arange(details.num_rows)
    chosen = chosen | (found >= 0)
    part = calls.select(list(columns))
    places = numbers(pa.int64(), np.flatnonzero(chosen))
    if not chosen.all():
        part, found = filter_rows(part, chosen), found[chosen]
    given = [
        pa.nulls(part.num_rows, pa.dictionary(pa.int32(), pa.binary()))
        if details is None
        else take_rows(details[name], np.maximum(found, 0), found >= 0)
        for name in BYTES
    ]
    return pa.RecordBatch.from_arrays([*part.columns, *given, places], names=[*columns, *BYTES, PLACE])


def read_request(catalog: Catalog, api_key: int, api_version: int, data: bytes | None) -> Fields:
    """The body's fields by name, without unreadable ones."""
    return {} if data is None else _read(catalog, api_key, api_version, data, "request")


def read_response(catalog: Catalog, api_key: int, api_version: int, data: bytes | None) -> Fields:
    """The same of a response."""
    return {} if data is None else _read(catalog, api_key, api_version, data, "response")


def _read(catalog: Catalog, api_key: int, api_version: int, data: bytes, direction: str) -> Fields:
    if len(data) <= _SHORT_MESSAGE:
        return _read_once(catalog, api_key, api_version, data, direction)
    return _read_anew(catalog, api_key, api_version, data, direction)


def _read_anew(catalog: Catalog, api_key: int, api_version: int, data: bytes, direction: str) -> Fields:
    from kwsniff.view.decode import decode
    from kwsniff.view.json_values import document

    if direction == "request":
        head = (api_key & 0xFFFF).to_bytes(2, "big") + (api_version & 0xFFFF).to_bytes(2, "big")
        message = decode(head + _NO_CORRELATION + data, catalog=catalog)
    else:
        message = decode(
            _NO_CORRELATION + data,
            direction="response",
            api_key=api_key,
            api_version=api_version,
            catalog=catalog,
        )
    body = message.tree.body
    said = document(body) if body is not None and message.program is not None else {}
    inside = {
        inner.path: document(inner.tree.body)
        for inner in message.found_inside().values()
        if inner.is_read and inner.tree is not None and inner.tree.body is not None
    }
    return {**said, "inside": inside}


_read_once = lru_cache(maxsize=128)(_read_anew)


def list_elements(said: Any, name: str) -> list[Any]:
    """The elements of an array that may be null or absent."""
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, list) else []
