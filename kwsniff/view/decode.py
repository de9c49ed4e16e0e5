"""Decodes one message's bytes to header, body and, for invalid bytes, the error; and formats them.

No bytes raise an exception (reading.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kwsniff.layout.catalog import Catalog, Layouts, load_catalog
from kwsniff.limits import Limits
from kwsniff.view import model
from kwsniff.view.embedded import found_inside
from kwsniff.view.json_values import document
from kwsniff.view.message import read_message
from kwsniff.view.model import LIMITS, Direction, Inner, Place
from kwsniff.zones import UTC_ZONE, Zone


@dataclass(slots=True)
class Message(model.Message):
    """A decoded message, with the content of its bytes fields, and its formats."""

    def found_inside(self) -> dict[Place, Inner]:
        """Content of the bytes fields; decoded on first use."""
        return found_inside(self)

    def as_full_dict(self) -> dict[str, Any]:
        """``as_dict`` and, as ``inside``, the content of the bytes fields."""
        return {**self.as_dict(), "inside": _inner_documents(self.found_inside())}

    def text(self, zone: Zone = UTC_ZONE) -> str:
        """A tree as text, with times in a zone."""
        from kwsniff.view.text import render

        return render(self, zone)

    def hexdump(self) -> str:
        """The bytes, 16 per line, each with the fields that begin in it."""
        from kwsniff.view.text import hexdump

        return hexdump(self)

    def __str__(self) -> str:
        return self.text()


def decode(
    data: bytes | bytearray | memoryview,
    *,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    catalog: Catalog | None = None,
    limits: Limits = LIMITS,
    layouts: Layouts | None = None,
) -> Message:
    """Decode one message: header and body, without the 4-byte size before it on the wire.

    A request contains its API and version; a response has neither, so both are required. After
    ``limits.message_fields`` fields reading stops with ``cells_limit``. ``layouts``: a vendor's layouts in
    addition to Kafka's, if no ``catalog`` is given. Raises UsageError for invalid arguments, and never for
    invalid bytes.
    """
    return read_message(
        Message,
        data,
        direction=direction,
        api_key=api_key,
        api_version=api_version,
        catalog=catalog or load_catalog(layouts),
        limits=limits,
    )


def _inner_documents(inner: Mapping[Place, Inner]) -> list[dict[str, Any]]:
    """Content of bytes fields: one object for each, in the order of the fields.

    ``path`` (JSON pointer of the field), ``name``, ``version``, then ``body``, ``message``, ``records`` or
    ``facts`` if present, ``error``, ``note`` and, nested, ``inside``.
    """
    return [_inner_document(inner[place]) for place in sorted(inner)]


def _inner_document(one: Inner) -> dict[str, Any]:
    """One of ``_inner_documents``."""
    shown: dict[str, Any] = {"path": one.path, "name": one.name, "version": one.version}
    inside = _inner_documents(one.inner)
    if one.tree is not None:
        shown["body"] = document(one.tree.body) if one.tree.body else None
    if one.message is not None:
        shown["message"] = one.message.as_dict()
        inside = _inner_documents(one.message.inner or {})
    if one.records is not None:
        shown["records"] = one.records.as_dict()
        for (batch, record, name), found in one.in_records.items():
            inside.append({**_inner_document(found), "path": f"/batches/{batch}/records/{record}/{name}"})
    if one.facts is not None:
        shown["facts"] = one.facts
    return {**shown, "error": one.error, "note": one.note or None, "inside": inside}
