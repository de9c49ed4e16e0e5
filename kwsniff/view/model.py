"""Data classes of this package: a message, the content of its bytes fields, a decoding error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program
from kwsniff.limits import Limits
from kwsniff.texts import json_text
from kwsniff.view.json_values import document, unknown_tags
from kwsniff.view.records import RecordSet
from kwsniff.view.tree import Node, Tree

Direction = Literal["request", "response"]

Place = tuple[int, int]
"""The place of a node in its tree: first byte of its value, op."""

RecordPlace = tuple[int, int, str]
"""Batch, record in it, ``key`` or ``value``."""

# A tree takes a few hundred bytes of memory per field; fields beyond this limit are not decoded.
LIMITS: Final = Limits()


class Break(NamedTuple):
    """A decoding error: a code of a closed list, a JSON pointer, the offset in the message."""

    code: str
    path: str
    offset: int


@dataclass(slots=True)
class Message:
    """A decoded message, complete or up to its error.

    ``api_name`` is empty and ``program`` None if the layout is unknown. ``header`` and ``body`` are None
    if no
    part of them was read. ``program.version`` differs from ``api_version`` only in the response of a broker
    that does not support the requested ApiVersions version. ``inner``: content of bytes fields (None: not
    decoded yet), within ``limits``; ``rest_hidden``: bytes without a layout must not be shown.
    """

    data: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    api_name: str
    program: Program | None
    tree: Tree
    header: Node | None
    body: Node | None
    error: Break | None
    inner: "dict[Place, Inner] | None" = None
    rest_hidden: bool = False
    limits: Limits = LIMITS
    catalog: Catalog = field(default_factory=load_catalog, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The JSON format: api_key, api_version, header, body, unknown_tags, error."""
        error = self.error
        return {
            "api_key": self.api_key,
            "api_version": self.api_version,
            "header": document(self.header) if self.header else None,
            "body": document(self.body) if self.body else None,
            "unknown_tags": unknown_tags(self.tree, b"" if self.rest_hidden else self.data),
            "error": {"code": error.code, "path": error.path, "offset": error.offset} if error else None,
        }

    def json(self) -> str:
        """``as_dict`` as one line."""
        return json_text(self.as_dict())


@dataclass(slots=True)
class Inner:
    """The content of one bytes field.

    ``name`` is its kind (a schema's name, ``records``, ``request``, ``metrics``), ``path`` is the JSON
    pointer of the field in the body (or schema) it is in. At most one of ``tree``, ``message``, ``records``
    and ``facts`` (plain JSON values) is set; none if it could not be read, with the reason in ``note``.
    """

    name: str
    version: int | None = None
    path: str = ""
    tree: Tree | None = None
    message: Message | None = None
    records: RecordSet | None = None
    facts: Any = None
    error: dict[str, Any] | None = None
    note: str = ""
    inner: "dict[Place, Inner]" = field(default_factory=dict)
    in_records: "dict[RecordPlace, Inner]" = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether this content shows all of the bytes."""
        found = any(part is not None for part in (self.tree, self.message, self.records, self.facts))
        return found and self.error is None


@dataclass(slots=True)
class Surroundings:
    """Facts from other messages on this one.

    ``protocol_type``: of the group, from the request of the same call. ``asked``: API key and version of
    the request that an Envelope's request carried. ``topics``: topic id -> name.
    """

    protocol_type: str | None = None
    asked: tuple[int, int] | None = None
    topics: Mapping[str, str] = field(default_factory=dict)


class SchemaReader(Protocol):
    """The function that reads content with its own schema, and its bytes fields."""

    catalog: Catalog

    def schema(self, name: str, version: int, data: bytes) -> Inner:
        """A schema's bare body and what is inside its own bytes fields."""
