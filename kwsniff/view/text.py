"""A message as text: an indented tree, or its bytes next to the fields that begin in them.

The tree has names, values, meanings of codes and times, and the decoding error. The content of a bytes field
follows it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import Field
from kwsniff.texts import json_text
from kwsniff.view.batches import record_set_lines, record_set_note
from kwsniff.view.embedded import found_inside
from kwsniff.view.formats import in_zone, shorten
from kwsniff.view.model import Inner, Message, Place
from kwsniff.view.redact import Redacted
from kwsniff.view.tree import Node, Tree, Value
from kwsniff.zones import UTC_ZONE, Zone

_WIDTH: Final = 16
"""Bytes of a line of a hexdump."""


def render(message: Message, zone: Zone = UTC_ZONE) -> str:
    """The whole tree, one field per line, two spaces per level; times in that zone."""
    name = message.api_name or "unknown api"
    key = "" if message.api_key is None else f" (key {message.api_key})"
    version = "" if message.api_version is None else f" v{message.api_version}"
    title = f"{name} {message.direction}{version}{key}, {len(message.data)} bytes"
    return "\n".join([title, *message_lines(message, zone)])


def message_lines(message: Message, zone: Zone = UTC_ZONE) -> Iterator[str]:
    """Header, body, unknown tags, and the decoding error."""
    inner = found_inside(message)
    for title, root in (("header", message.header), ("body", message.body)):
        if root is None:
            continue
        yield title
        for child in root.children:
            yield from _node(child, 1, message.tree, inner, zone)
    for unknown in message.tree.unknown_tags:
        payload = message.data[unknown.start : unknown.start + unknown.size]
        text = f"unknown tag {unknown.tag} in {unknown.path or '/'}: {unknown.size} bytes"
        yield text if message.rest_hidden else f"{text} {shorten(payload.hex())}".rstrip()
    for path, difference in message.tree.wrong_sizes:
        word = "fewer" if difference > 0 else "more"
        yield f"! {path} used {abs(difference)} bytes {word} than its declared size"
    if message.error is not None:
        rest = message.data[message.error.offset :]
        place = message.error.path or "/"
        title = f"! {message.error.code} at byte {message.error.offset} in {place}"
        title += f", {len(rest)} bytes from there on"
        if message.rest_hidden or not rest:
            yield f"{title}, hidden" if rest else title
        else:
            yield f"{title}:"
            yield f"  {shorten(rest.hex())}"


def _node(node: Node, depth: int, tree: Tree, inner: Mapping[Place, Inner], zone: Zone) -> Iterator[str]:
    margin = "  " * depth
    if node.is_leaf:
        field = tree.shape.fields[node.op]
        found = inner.get((node.start, node.op))
        value = f"{node.end - node.start} bytes" if found and found.is_read else format_value(node.value)
        yield f"{margin}{node.name}: {value}{_note(field, node.value, tree, zone)}{_inner_note(found)}"
        if found is not None:
            yield from inner_lines(found, depth + 1, zone)
        return
    if node.count >= 0:
        read = len(node.children)
        count = str(node.count) if read == node.count else f"{read} of {node.count}"
        yield f"{margin}{node.name}: [{count}]"
    else:
        yield f"{margin}{node.name}:"
    for child in node.children:
        yield from _node(child, depth + 1, tree, inner, zone)


def _inner_note(found: Inner | None) -> str:
    if found is None:
        return ""
    parts = []
    if found.message is not None:
        version = "" if found.version is None else f" v{found.version}"
        parts.append(f"{found.message.api_name or 'unknown api'} {found.name}{version}")
    elif found.records is not None:
        parts.append(record_set_note(found.records))
    elif found.name != "bytes":
        parts.append(found.name if found.version is None else f"{found.name} v{found.version}")
    if found.note:
        parts.append(found.note)
    return f"  {', '.join(parts)}" if parts else ""


def inner_lines(found: Inner, depth: int, zone: Zone = UTC_ZONE) -> Iterator[str]:
    """The content of one bytes field."""
    margin = "  " * depth
    if found.message is not None:
        yield from (f"{margin}{line}" for line in message_lines(found.message, zone))
        return
    if found.records is not None:
        for line, one in record_set_lines(found, zone):
            yield f"{margin}{line}{_inner_note(one)}"
            if one is not None:
                yield from inner_lines(one, depth + 2, zone)
    if found.tree is not None and found.tree.body is not None:
        for child in found.tree.body.children:
            yield from _node(child, depth, found.tree, found.inner, zone)
    if found.facts is not None:
        yield from (f"{margin}{line}" for line in _facts(found))
    if found.error is not None and found.records is None:
        error = found.error
        yield f"{margin}! {error['code']} at byte {error['offset']} of it in {error['path'] or '/'}"


def _facts(found: Inner) -> Iterator[str]:
    if found.name != "metrics":
        yield shorten(json_text(found.facts))
        return
    yield f"{found.facts['bytes']} bytes, {len(found.facts['metrics'])} metrics"
    for metric in found.facts["metrics"]:
        kind, unit = metric["kind"] or "no data", f", in {metric['unit']!r}" if metric["unit"] else ""
        name = format_value(metric["name"])
        yield f"  {name}: {kind}, {metric['points']} points{unit}, {metric['bytes']} bytes"


def format_value(value: Value) -> str:
    """A leaf's value as text: strings quoted with control characters escaped, long values cut."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        if isinstance(value, Redacted):
            return str(value)
        quoted = ascii(value) if not value.isprintable() else repr(value)
        return shorten(quoted)
    if isinstance(value, bytes):
        return f"{len(value)} bytes {shorten(value.hex())}".rstrip()
    if isinstance(value, list):
        return shorten("[" + ", ".join(format_value(item) for item in value[:100]) + "]")
    return str(value)


def _note(field: Field | None, value: Value, tree: Tree, zone: Zone) -> str:
    text = ""
    if field is not None and isinstance(value, str):
        is_named = field.meaning is Meaning.TOPIC_ID and value in tree.topics
        text = format_value(tree.topics[value]) if is_named else ""
    elif field is not None and isinstance(value, int) and not isinstance(value, bool):
        text = _meant(field, value, tree.catalog or load_catalog(), zone)
    return f"  {text}" if text else ""


def _meant(field: Field, value: int, catalog: Catalog, zone: Zone) -> str:
    """The meaning of a number."""
    if field.meaning is Meaning.ERROR:
        error = catalog.errors.get(value)
        return error.name if error else "unknown error code"
    if field.meaning is Meaning.API_KEY:
        api = catalog.apis.get(value)
        return api.name if api else ""
    if field.meaning is Meaning.TIMESTAMP and value > 0:
        time = in_zone(value, zone)
        return time if time != str(value) else ""
    return catalog.enums.get(field.enum, {}).get(value) or "" if field.enum else ""


def hexdump(message: Message) -> str:
    """Lines of offset, 16 bytes in hex, the same as ASCII, and the leaves whose value begins there."""
    starts: dict[int, list[str]] = {}
    hidden: set[int] = set()
    for _, node in message.tree.walk():
        if node.is_leaf:
            starts.setdefault(node.start // _WIDTH, []).append(f"{node.name}={format_value(node.value)}")
            if isinstance(node.value, Redacted):
                hidden.update(range(node.start, node.end))
    if message.rest_hidden:
        for tag in message.tree.unknown_tags:
            hidden.update(range(tag.start, tag.start + tag.size))
        if message.error is not None:
            hidden.update(range(message.error.offset, len(message.data)))
    if message.error is not None:
        starts.setdefault(message.error.offset // _WIDTH, []).append(f"! {message.error.code}")
    lines = []
    for at in range(0, len(message.data), _WIDTH):
        piece = message.data[at : at + _WIDTH]
        pairs = ["**" if at + i in hidden else f"{byte:02x}" for i, byte in enumerate(piece)]
        chars = [
            "*" if at + i in hidden else chr(byte) if 32 <= byte < 127 else "."
            for i, byte in enumerate(piece)
        ]
        columns = f"{at:08x}  {' '.join(pairs[:8]):<23}  {' '.join(pairs[8:]):<23}  |{''.join(chars):<16}|"
        lines.append(f"{columns}  {'  '.join(starts.get(at // _WIDTH, ()))}".rstrip())
    return "\n".join(lines)
