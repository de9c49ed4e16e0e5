"""What is known of a client, as a row: values, their proof, and the defaults of its library."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.clients.defaults import find_defaults
from kwsniff.timelines.clients.intervals import Mode, find_mode, find_tighter
from kwsniff.timelines.clients.roles import find_role, list_features

Values = dict[str, dict[Any, int]]

_WORDS: Final = ("caller", "protocol_type", "assignors", "group_id")
_BATCHES: Final = ("compression", "idempotent")
_OF_CONNECTIONS: Final = ("software", "software_version")
_DELAY: Final = 1_500
"""Microseconds: timestamps of records have milliseconds, and a client's timer is late."""
_HALF: Final = 500
"""Microseconds that the milliseconds of a timestamp lack on average."""
_FLUSHED: Final = 2
"""Milliseconds. A program that flushes and waits sends as soon, whatever its linger.ms."""
_AWAITED: Final = 2
"""Requests in flight while a program waits for one: another one may be for metadata."""
_MOST_LISTED: Final = 8
_COLUMNS: Final = tuple(column.name for column in TABLES["clients"].own)


class Known(Protocol):
    """What a row is made of."""

    calls: int
    first: int | None
    last: int | None
    values: Values
    keys: dict[int, int]
    in_flight: int
    batch_bytes: int
    delays: list[int]


def row_of(
    catalog: Catalog, key: tuple[str | None, str], client: Known, times: Mapping[str, Sequence[Sequence[int]]]
) -> dict[str, Any]:
    """The row of a client. `times`: its intervals, in microseconds, as they may be measured."""
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    known: dict[str, str] = {}
    several: list[str] = []
    for name in row.keys() & client.values.keys():
        _take_values(row, name, client.values[name], known, several)
    for name, mode in _modes(client, times):
        row[name], known[name] = mode.value, str(mode)
    for name, most in (("max_in_flight", client.in_flight), ("batch_bytes", client.batch_bytes)):
        if most:
            row[name], known[name] = most, "at least"
    words = words_of_role(client)
    assignors = row["assignors"]
    row["assignors"] = None if assignors is None else assignors.split(", ")
    defaults = find_defaults(catalog, row["software"], row["software_version"])
    compared = {name: value for name, value in defaults.items() if row.get(name) is not None}
    shown = {name: _text(row[name]) for name in compared}
    row |= {
        "client_id": key[0],
        "address": key[1],
        "role": find_role(catalog, key[0], client.keys, words),
        "features": list_features(catalog, key[0]) or None,
        "first_time": None if client.first is None else client.first * 1000,
        "last_time": None if client.last is None else client.last * 1000,
        "calls": client.calls,
        "known_by": [f"{name}: {known[name]}" for name in row if name in known] or None,
        "several": sorted(several) or None,
        "defaults": [f"{name}={compared[name]}" for name in row if name in compared] or None,
        "changed": [name for name in row if name in compared and shown[name] != compared[name]]
        if compared
        else None,
    }
    return row


def words_of_role(client: Known) -> dict[str, dict[Any, int]]:
    """What find_role wants to know, by name."""
    return {name: client.values.get(name, {}) for name in _WORDS}


def _take_values(
    row: dict[str, Any], name: str, values: dict[Any, int], known: dict[str, str], several: list[str]
) -> None:
    if len(values) == 1:
        (row[name],) = values
        if name not in _OF_CONNECTIONS:
            number = sum(values.values())
            what = ("batch", "batches") if name in _BATCHES else ("request", "requests")
            known[name] = f"{number:,} {what[number != 1]}"
    else:
        most = sorted(values.items(), key=lambda each: (-each[1], str(each[0])))[:_MOST_LISTED]
        several.append(f"{name}: " + ", ".join(f"{_text(value)} in {number:,}" for value, number in most))


def _modes(client: Known, times: Mapping[str, Sequence[Sequence[int]]]) -> list[tuple[str, Mode]]:
    found = {name: find_tighter(measured) for name, measured in times.items()}
    if client.delays and min(client.delays) >= _HALF - _DELAY:
        mode = find_mode([delay - _HALF if delay > _HALF else 0 for delay in client.delays], _DELAY)
        if mode and (mode.value > _FLUSHED or client.in_flight > _AWAITED):
            found["linger_ms"] = mode
    return [(name, mode) for name, mode in found.items() if mode]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, list) else str(value)
