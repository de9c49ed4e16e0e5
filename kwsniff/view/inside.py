"""Content of bytes fields, as plain JSON values."""

from collections.abc import Mapping
from typing import Any

from kwsniff.view.document import document
from kwsniff.view.model import Inner, Place


def inner_documents(inner: Mapping[Place, Inner]) -> list[dict[str, Any]]:
    """Content of bytes fields: one object for each, in the order of the fields.

    ``path`` (JSON pointer of the field), ``name``, ``version``, then ``body``, ``message``, ``records`` or
    ``facts`` if present, ``error``, ``note`` and, nested, ``inside``.
    """
    return [inner_document(inner[place]) for place in sorted(inner)]


def inner_document(one: Inner) -> dict[str, Any]:
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
