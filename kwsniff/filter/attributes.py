"""What a filter may name: the columns of api_calls, short names for some of them, and packets."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Final, Literal

from kwsniff.tables.schema import TABLES

Kind = Literal["number", "duration", "size", "time", "flag", "text", "texts", "errors", "packets"]

ERROR: Final = "error"
"""Every error code of the response, from the table error_codes: a list, as `topics` is."""

FRAME: Final = "frame"
"""A packet of the call, as Wireshark numbers the packets of a capture file (`frame.number`)."""

STREAM: Final = "stream"
"""The call's TCP connection, as Wireshark numbers those of a capture file (`tcp.stream`)."""

KINDS: Final[Mapping[Kind, str]] = {
    "number": "a number",
    "duration": "a duration, such as 100ms",
    "size": "a size in bytes, such as 1MB",
    "time": "a time, such as '2026-11-20 22:06' or +30s",
    "flag": "true or false",
    "text": "a text",
    "texts": "a list of texts",
    "errors": "a list of error codes, by name or number",
    "packets": "the number of a packet or stream, as in Wireshark",
}
_UNITS: Final = {"nanoseconds": 1, "milliseconds": 1_000_000}
_SUFFIXES: Final = ("_ns", "_ms")
_FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name`: as written; `column`: of api_calls. `unit_ns`: nanoseconds of a duration's unit. `words`:
    name of the closed list of a text, "" for none. `bare`: whether a duration may be a number without a
    unit."""

    name: str
    column: str
    kind: Kind
    unit_ns: int = 1
    words: str = ""
    bare: bool = True


@cache
def load_attributes() -> Mapping[str, Attribute]:
    """Name -> attribute. Columns of durations also go by their name without the unit (`latency`), `topics`
    also as `topic`."""
    found: dict[str, Attribute] = {}
    for column in TABLES["api_calls"].own:
        name = column.name
        if column.unit in _UNITS:
            unit_ns = _UNITS[column.unit]
            found[name] = Attribute(name, name, "duration", unit_ns)
            short = name.removesuffix(_SUFFIXES[0]).removesuffix(_SUFFIXES[1])
            found.setdefault(short, Attribute(short, name, "duration", unit_ns, bare=short == name))
        elif column.unit == "bytes":
            found[name] = Attribute(name, name, "size")
        elif column.type == "strings":
            found[name] = Attribute(name, name, "texts")
            found[name.removesuffix("s")] = Attribute(name.removesuffix("s"), name, "texts")
        else:
            kinds: Mapping[str, Kind] = {"string": "text", "bool": "flag", "time": "time"}
            words = column.enum or (name if name in ("api_name", "error_name") else "")
            found[name] = Attribute(name, name, kinds.get(column.type, "number"), words=words)
    found[ERROR] = Attribute(ERROR, ERROR, "errors")
    for name in (FRAME, STREAM):
        found[name] = Attribute(name, name, "packets")
    return found


def nearest(name: str) -> str:
    """The end of a message on an unknown name: the names that it may have meant."""
    known = load_attributes()
    begun = [each for each in known if len(name) >= _FEWEST and each.startswith(name)]
    near = begun[:3] or get_close_matches(name, known, 3, 0.6)
    if not near:
        near = [each for each in known if len(name) >= _FEWEST and name in each][:3]
    return f"did you mean {' or '.join(near)}?" if near else "kwsniff explain api_calls lists the columns"
