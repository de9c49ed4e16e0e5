"""Tree to plain JSON values, by the rules of Kafka's own converters with the protocol guide's names.

Bytes and records are standard base64, uuids 22 characters, integers JSON numbers in full precision, floats
that JSON has no number for are the words NaN, Infinity and -Infinity. A field that is not on the wire is
absent; of a tagged field that comes twice the last one counts, as in Kafka.
"""

from base64 import b64encode
from collections.abc import Mapping
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from kwsniff.view.tree import Node, Tree, Value

if TYPE_CHECKING:
    from kwsniff.view.inner import Inner, Place


def document(node: Node) -> Any:
    """The JSON value of a node and all below it."""
    if node.is_leaf:
        return _plain(node.value)
    if node.count >= 0:
        return [document(child) for child in node.children]
    return {child.name: document(child) for child in node.children}


def unknown_tags(tree: Tree, data: bytes) -> list[dict[str, Any]]:
    """Tagged fields the layout does not know: path of their struct, tag number, payload in hex.

    Without the message's bytes the payload is only sized.
    """
    return [
        {
            "path": tag.path,
            "tag": tag.tag,
            "hex": data[tag.start : tag.start + tag.size].hex() if data else f"<hidden, {tag.size} bytes>",
        }
        for tag in tree.unknown_tags
    ]


def inner_documents(inner: "Mapping[Place, Inner]") -> list[dict[str, Any]]:
    """What was found inside bytes fields: one object for each, in the order of the fields.

    ``path`` (JSON pointer of the field), ``name``, ``version``, then ``body``, ``message``, ``records`` or
    ``facts`` as far as there is one, ``error``, ``note`` and in turn ``inside``.
    """
    return [inner_document(inner[place]) for place in sorted(inner)]


def inner_document(one: "Inner") -> dict[str, Any]:
    """One of ``inner_documents``."""
    shown: dict[str, Any] = {"path": one.path, "name": one.name, "version": one.version}
    inside = inner_documents(one.inner)
    if one.tree is not None:
        shown["body"] = document(one.tree.body) if one.tree.body else None
    if one.message is not None:
        shown["message"] = one.message.as_dict()
        inside = inner_documents(one.message.inner or {})
    if one.records is not None:
        shown["records"] = one.records.as_dict()
        for (batch, record, name), found in one.in_records.items():
            inside.append({**inner_document(found), "path": f"/batches/{batch}/records/{record}/{name}"})
    if one.facts is not None:
        shown["facts"] = one.facts
    return {**shown, "error": one.error, "note": one.note or None, "inside": inside}


def _plain(value: Value) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, list):
        return [_plain(item) for item in value] if value and isinstance(value[0], bytes | float) else value
    return value
