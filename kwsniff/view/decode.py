"""One message's bytes to header, body and, where it breaks, the break.

Nothing in the bytes raises. Error codes are the engine's statuses (``kwsniff.core.wire.engine.STATUSES``) and
``unknown_api``, ``unknown_version``: then only the header is read, as a broker would.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program, compile_schema
from kwsniff.limits import Limits
from kwsniff.view.document import document, inner_documents, unknown_tags
from kwsniff.view.inner import Inner, Place, find_inner
from kwsniff.view.tree import Node, Tree, fold

Direction = Literal["request", "response"]

_API_VERSIONS: Final = 18
# A tree costs some hundred bytes of memory per cell; a message of more fields is shown up to here.
_LIMITS: Final = Limits()
_UNSUPPORTED_VERSION: Final = b"\x00\x23"
_LEFT_OVER: Final = STATUSES.index("bytes_left_over")


@dataclass(frozen=True, slots=True)
class Break:
    """Where and why reading stopped: a closed list's code, a JSON pointer, the offset in the message."""

    code: str
    path: str
    offset: int


@dataclass(slots=True)
class Message:
    """A decoded message, complete or up to its break.

    ``api_name`` is empty and ``program`` None where the layout is not known. ``header`` and ``body`` are None
    where nothing of them was read. ``program.version`` differs from ``api_version`` only in the answer of a
    broker that did not know the asked ApiVersions version. ``inner`` is what was found inside bytes fields
    (None: nobody has looked), within ``limits``; ``rest_hidden`` that bytes without a layout are not to be
    shown.
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
    inner: dict[Place, Inner] | None = None
    rest_hidden: bool = False
    limits: Limits = _LIMITS

    def found_inside(self) -> dict[Place, Inner]:
        """What is inside the bytes fields; looked for when it is first asked for."""
        if self.inner is None:
            self.inner = find_inner(self)
        return self.inner

    def as_full_dict(self) -> dict[str, Any]:
        """``as_dict`` and, as ``inside``, what the bytes fields hold."""
        return {**self.as_dict(), "inside": inner_documents(self.found_inside())}

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: api_key, api_version, header, body, unknown_tags, error."""
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
        return json.dumps(self.as_dict())

    def text(self) -> str:
        """A tree for a person to read."""
        from kwsniff.view.text import render

        return render(self)

    def hexdump(self) -> str:
        """The bytes, 16 per line, each with the fields that begin in it."""
        from kwsniff.view.hexdump import render

        return render(self)

    def __str__(self) -> str:
        return self.text()


class _Asked(NamedTuple):
    catalog: Catalog
    data: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    limits: Limits


def decode(
    data: bytes | bytearray | memoryview,
    *,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    catalog: Catalog | None = None,
    limits: Limits = _LIMITS,
) -> Message:
    """Decode one message: header and body, without the 4-byte size before it on the wire.

    A request names its API and version itself; a response has neither, so both must be given. After
    ``limits.cells`` fields reading stops with ``cells_limit``. Raises UsageError for arguments that make no
    sense, nothing for bytes that make none.
    """
    catalog = catalog or load_catalog()
    data = bytes(data)
    if direction == "request":
        if len(data) < 4:
            return _header_only(_Asked(catalog, data, "request", None, None, limits), 1)
        api_key = int.from_bytes(data[:2], "big", signed=True)
        api_version = int.from_bytes(data[2:4], "big", signed=True)
    elif direction != "response":
        raise UsageError(f"direction is 'request' or 'response', not {direction!r}")
    elif api_key is None or api_version is None:
        raise UsageError("a response does not name its API: give api_key and api_version")
    asked = _Asked(catalog, data, direction, api_key, api_version, limits)
    program = catalog.program(api_key, api_version, direction == "response")
    if program is None:
        return _unknown(asked, api_key, api_version)
    message = _run(asked, program)
    if message.error is not None:
        for other in _others(asked, api_key, api_version):
            second = _run(asked, other)
            if second.error is None:
                return second
    return message


def _others(asked: _Asked, api_key: int, api_version: int) -> tuple[Program, ...]:
    # What else the same bytes may be when their layout does not fit.
    if api_key == _API_VERSIONS and asked.direction == "response" and api_version > 0:
        # A broker that does not know the version answers in version 0 with error 35; Kafka's client, too,
        # tries the version it asked for first.
        oldest = asked.catalog.program(api_key, 0, 1)
        return (oldest,) if oldest and asked.data[4:6] == _UNSUPPORTED_VERSION else ()
    return _alternates(asked.catalog, api_key, api_version, asked.direction == "response")


@lru_cache(maxsize=64)
def _alternates(catalog: Catalog, api_key: int, api_version: int, direction: int) -> tuple[Program, ...]:
    return catalog.alternates(api_key, api_version, direction)


@lru_cache(maxsize=8)
def _header_program(catalog: Catalog, direction: int, version: int) -> Program:
    return compile_schema(catalog.headers[direction], version)


def _run(asked: _Asked, program: Program) -> Message:
    cells, status, offset, op = run(program.code, asked.data, max_cells=asked.limits.cells)
    tree = fold(program, cells, asked.data)
    error = Break(STATUSES[status], tree.break_path(op), offset) if status else None
    name = asked.catalog.apis[program.api].name
    return Message(*asked[1:5], name, program, tree, tree.header, tree.body, error, limits=asked.limits)


def _unknown(asked: _Asked, api_key: int, api_version: int) -> Message:
    is_request = asked.direction == "request"
    api = asked.catalog.apis.get(api_key)
    version = asked.catalog.header_version(api_key, api_version, not is_request)
    if version is None and is_request:
        # A vendor's key. Header 2 is header 1 and tagged fields; tags nobody knows of speak against it.
        guess = _header_only(asked, 2)
        version = 1 if guess.tree.unknown_tags or guess.error else 2
    message = _header_only(asked, version or 0)
    if not is_request:
        place = ("", 4)
    else:
        place = ("header:/request_api_version", 2) if api else ("header:/request_api_key", 0)
    message.error = Break("unknown_version" if api else "unknown_api", *place)
    return message


def _header_only(asked: _Asked, header_version: int) -> Message:
    program = _header_program(asked.catalog, asked.direction == "response", header_version)
    cells, status, offset, op = run(program.code, asked.data)
    tree = fold(program, cells, asked.data)
    error = None
    if status not in (0, _LEFT_OVER):
        error = Break(STATUSES[status], f"header:{tree.break_path(op)}", offset)
    tree.unknown_tags = [tag._replace(path=f"header:{tag.path}") for tag in tree.unknown_tags]
    api = asked.catalog.apis.get(asked.api_key) if asked.api_key is not None else None
    return Message(*asked[1:5], api.name if api else "", None, tree, tree.body, None, error)
