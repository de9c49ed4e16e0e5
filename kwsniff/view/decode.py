"""Decodes one message's bytes to header, body and, for invalid bytes, the error; and formats them.

No bytes raise an exception (reading.py).
"""

import os
from dataclasses import dataclass
from typing import Any

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.limits import Limits
from kwsniff.view import model
from kwsniff.view.inner import found_inside
from kwsniff.view.inside import inner_documents
from kwsniff.view.model import LIMITS, Direction, Inner, Place
from kwsniff.view.reading import read_message
from kwsniff.zones import UTC_ZONE, Zone


@dataclass(slots=True)
class Message(model.Message):
    """A decoded message, with the content of its bytes fields, and its formats."""

    def found_inside(self) -> dict[Place, Inner]:
        """Content of the bytes fields; decoded on first use."""
        return found_inside(self)

    def as_full_dict(self) -> dict[str, Any]:
        """``as_dict`` and, as ``inside``, the content of the bytes fields."""
        return {**self.as_dict(), "inside": inner_documents(self.found_inside())}

    def text(self, zone: Zone = UTC_ZONE) -> str:
        """A tree as text, with times in a zone."""
        from kwsniff.view.text import render

        return render(self, zone)

    def hexdump(self) -> str:
        """The bytes, 16 per line, each with the fields that begin in it."""
        from kwsniff.view.hexdump import render

        return render(self)

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
    layouts: str | os.PathLike[str] | None = None,
) -> Message:
    """Decode one message: header and body, without the 4-byte size before it on the wire.

    A request contains its API and version; a response has neither, so both are required. After
    ``limits.message_fields`` fields reading stops with ``cells_limit``. ``layouts``: a folder of a vendor's layouts in
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
