"""Decodes records of Kafka's internal topics.

__consumer_offsets, __transaction_state, __share_group_state
    key    int16 type, body          value    int16 version, body; null deletes
__cluster_metadata, __remote_log_metadata
    value  uvarint frame (1; 0 in the preview of 2.8), uvarint type, uvarint version, body
"""

from base64 import b64decode
from functools import lru_cache
from typing import Any, Final

from kwsniff.layout.catalog import Catalog
from kwsniff.view.model import Inner, SchemaReader

_COORDINATORS: Final = {
    "__consumer_offsets": "group_coordinator",
    "__transaction_state": "transaction_coordinator",
    "__share_group_state": "share_coordinator",
}
_LOGS: Final = {"__cluster_metadata": "metadata", "__remote_log_metadata": "storage"}
_FRAMES: Final = (0, 1)


def read_record(finder: SchemaReader, topic: str, record: dict[str, Any]) -> dict[str, Inner]:
    """``key`` and ``value`` of a record (base64), if they have a schema in this topic."""
    if topic in _COORDINATORS:
        return _coordinator(finder, _COORDINATORS[topic], _bytes(record["key"]), _bytes(record["value"]))
    if topic in _LOGS and record["value"] is not None:
        return {"value": _metadata(finder, _LOGS[topic], _bytes(record["value"]) or b"")}
    return {}


def _bytes(base64: str | None) -> bytes | None:
    return None if base64 is None else b64decode(base64)


def _coordinator(
    finder: SchemaReader, module: str, key: bytes | None, value: bytes | None
) -> dict[str, Inner]:
    if key is None or len(key) < 2:
        return {}
    number = int.from_bytes(key[:2], "big", signed=True)
    names = _by_number(finder.catalog, module)
    name = names.get((number, "Key"))
    if name is None:
        return {"key": Inner("bytes", note=f"unknown key type {number}")}
    found = {"key": finder.schema(name, finder.catalog.schemas[name].versions[0], key[2:])}
    # Before 4.1 the key type was the version of the key, so the version does not describe the bytes.
    found["key"].version = None
    name = names.get((number, "Value"))
    if value is not None and name is not None:
        if len(value) < 2:
            found["value"] = Inner(name, note="too short for a version")
        else:
            found["value"] = finder.schema(name, int.from_bytes(value[:2], "big", signed=True), value[2:])
    return found


def _metadata(finder: SchemaReader, module: str, value: bytes) -> Inner:
    numbers, at = _uvarints(value)
    if len(numbers) < 3 or numbers[0] not in _FRAMES:
        return Inner("bytes", note="does not begin like a metadata record")
    name = _by_number(finder.catalog, module).get((numbers[1], ""))
    if name is None:
        return Inner("bytes", note=f"unknown record type {numbers[1]}")
    return finder.schema(name, numbers[2], value[at:])


def _uvarints(data: bytes) -> tuple[list[int], int]:
    """The first three unsigned varints and their end; fewer if the bytes end earlier."""
    numbers = []
    raw = shift = 0
    for at, byte in enumerate(data[:15]):
        raw |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(raw)
            raw = shift = 0
            if len(numbers) == 3:
                return numbers, at + 1
    return numbers, 0


@lru_cache(maxsize=8)
def _by_number(catalog: Catalog, module: str) -> dict[tuple[int, str], str]:
    """(type, Key or Value or nothing) -> schema."""
    found = {}
    for name, schema in catalog.schemas.items():
        if schema.module == module and schema.number is not None:
            ending = next((word for word in ("Key", "Value") if name.endswith(word)), "")
            found[schema.number, ending] = name
    return found
