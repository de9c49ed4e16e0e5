"""A message as an indented tree for a person: names, values, what codes and times mean, and the break."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kwsniff.core.records import batches
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import Field
from kwsniff.view.tree import Node, Value

if TYPE_CHECKING:
    from kwsniff.view.decode import Message

_LONGEST_VALUE: Final = 120
_LAST_TIME: Final = 253_402_300_800_000


def render(message: "Message") -> str:
    """The whole tree, one field per line, two spaces per level."""
    return "\n".join(_lines(message))


def _lines(message: "Message") -> Iterator[str]:
    name = message.api_name or "unknown api"
    key = "" if message.api_key is None else f" (key {message.api_key})"
    version = "" if message.api_version is None else f" v{message.api_version}"
    yield f"{name} {message.direction}{version}{key}, {len(message.data)} bytes"
    fields = message.program.fields if message.program else ()
    for title, root in (("header", message.header), ("body", message.body)):
        if root is None:
            continue
        # Header-only messages have a program of their own, whose fields need no notes.
        yield title
        for child in root.children:
            yield from _node(child, 1, fields)
    for unknown in message.tree.unknown_tags:
        payload = _shorten(message.data[unknown.start : unknown.start + unknown.size].hex())
        yield f"unknown tag {unknown.tag} in {unknown.path or '/'}: {unknown.size} bytes {payload}".rstrip()
    for path, difference in message.tree.wrong_sizes:
        word = "fewer" if difference > 0 else "more"
        yield f"! {path} used {abs(difference)} bytes {word} than its declared size"
    if message.error is not None:
        left = len(message.data) - message.error.offset
        place = message.error.path or "/"
        yield f"! {message.error.code} at byte {message.error.offset} in {place}, {left} bytes from there on:"
        yield f"  {_shorten(message.data[message.error.offset :].hex())}"


def _node(node: Node, depth: int, fields: tuple[Field | None, ...]) -> Iterator[str]:
    margin = "  " * depth
    if node.is_leaf:
        field = fields[node.op] if node.op < len(fields) else None
        note = _records_note(node.value) if field and field.type == "records" else _note(field, node.value)
        yield f"{margin}{node.name}: {shown(node.value)}{note}"
        return
    if node.count >= 0:
        read = len(node.children)
        count = str(node.count) if read == node.count else f"{read} of {node.count}"
        yield f"{margin}{node.name}: [{count}]"
    else:
        yield f"{margin}{node.name}:"
    for child in node.children:
        yield from _node(child, depth + 1, fields)


def shown(value: Value) -> str:
    """A leaf's value as text: strings quoted with control characters escaped, long values cut."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        quoted = ascii(value) if not value.isprintable() else repr(value)
        return _shorten(quoted)
    if isinstance(value, bytes):
        return f"{len(value)} bytes {_shorten(value.hex())}".rstrip()
    if isinstance(value, list):
        return _shorten("[" + ", ".join(shown(item) for item in value[:100]) + "]")
    return str(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _records_note(value: Value) -> str:
    if not isinstance(value, bytes):
        return ""
    found, _, offset = batches(value)
    counts = [batch.record_count for batch in found]
    records = f"{sum(counts)} records" if min(counts, default=0) >= 0 else "records inside"
    cut = f", then {len(value) - offset} bytes" if offset < len(value) else ""
    return f"  {len(found)} batches, {records}{cut}"


def _note(field: Field | None, value: Value) -> str:
    if field is None or isinstance(value, bool) or not isinstance(value, int):
        return ""
    catalog = load_catalog()
    if field.meaning is Meaning.ERROR:
        error = catalog.errors.get(value)
        return f"  {error.name}" if error else "  unknown error code"
    if field.meaning is Meaning.API_KEY:
        api = catalog.apis.get(value)
        return f"  {api.name}" if api else ""
    if field.meaning is Meaning.TIMESTAMP and 0 < value < _LAST_TIME:
        return f"  {datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec='milliseconds')}"
    if field.enum:
        name = catalog.enums.get(field.enum, {}).get(value)
        return f"  {name}" if name else ""
    return ""
