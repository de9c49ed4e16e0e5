"""Tree to plain JSON values, by the rules of Kafka's own converters with the protocol guide's names.

Bytes and records are standard base64, uuids 22 characters, integers JSON numbers in full precision, floats
without a JSON number are the words NaN, Infinity and -Infinity. A field that is not on the wire is
absent; if a tagged field occurs twice, the last one counts, as in Kafka.
"""

from base64 import b64encode
from math import isfinite, isnan
from typing import Any

from kwsniff.view.tree import Node, Tree, Value


def document(node: Node) -> Any:
    """The JSON value of a node and its descendants."""
    if node.is_leaf:
        return _plain(node.value)
    if node.count >= 0:
        return [document(child) for child in node.children]
    return {child.name: document(child) for child in node.children}


def unknown_tags(tree: Tree, data: bytes) -> list[dict[str, Any]]:
    """Unknown tagged fields: path of their struct, tag number, payload in hex.

    Without the message's bytes, only the size of the payload.
    """
    return [
        {
            "path": tag.path,
            "tag": tag.tag,
            "hex": data[tag.start : tag.start + tag.size].hex() if data else f"<hidden, {tag.size} bytes>",
        }
        for tag in tree.unknown_tags
    ]


def _plain(value: Value) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, list):
        return [_plain(item) for item in value] if value and isinstance(value[0], bytes | float) else value
    return value
