"""Decodes one message's bytes to header, body and, for invalid bytes, the error.

No bytes raise an exception. Error codes are the engine's statuses (``kwsniff.core.wire.engine.STATUSES``) and
``unknown_api``, ``unknown_version``: then only the header is read, as by a broker.
"""

from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program, compile_schema
from kwsniff.limits import Limits
from kwsniff.view.model import LIMITS, Break, Direction, Message
from kwsniff.view.tree import fold

_UNSUPPORTED_VERSION: Final = b"\x00\x23"
_LEFT_OVER: Final = STATUSES.index("bytes_left_over")


AnyMessage = TypeVar("AnyMessage", bound=Message)


class _Asked(NamedTuple):
    catalog: Catalog
    data: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    limits: Limits


def read_message(
    kind: type[AnyMessage],
    data: bytes | bytearray | memoryview,
    *,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    catalog: Catalog | None = None,
    limits: Limits = LIMITS,
) -> AnyMessage:
    """Decode one message into a `kind`: header and body, without the 4-byte size before it on the wire.

    A request contains its API and version; a response has neither, so both are required. After
    ``limits.message_fields`` fields reading stops with ``cells_limit``. Raises UsageError for invalid
    arguments, and never for invalid bytes.
    """
    catalog = catalog or load_catalog()
    data = bytes(data)
    if direction == "request":
        if len(data) < 4:
            return _header_only(kind, _Asked(catalog, data, "request", None, None, limits), 1)
        api_key = int.from_bytes(data[:2], "big", signed=True)
        api_version = int.from_bytes(data[2:4], "big", signed=True)
    elif direction != "response":
        raise UsageError(f"direction must be 'request' or 'response', not {direction!r}")
    elif api_key is None or api_version is None:
        raise UsageError("a response does not contain its API: give api_key and api_version")
    asked = _Asked(catalog, data, direction, api_key, api_version, limits)
    program = catalog.program(api_key, api_version, direction == "response")
    if program is None:
        return _make_unread(kind, asked, api_key, api_version)
    message = _run(kind, asked, program)
    if message.error is not None:
        for other in _others(asked, api_key, api_version):
            second = _run(kind, asked, other)
            if second.error is None:
                return second
    return message


def _others(asked: _Asked, api_key: int, api_version: int) -> tuple[Program, ...]:
    # Other interpretations of bytes that do not match their layout.
    api = asked.catalog.apis[api_key]
    if api.traits.fallback and asked.direction == "response" and api_version > 0:
        # A broker that does not support the version responds in version 0 with error 35; like Kafka's client,
        # try the requested version first.
        oldest = asked.catalog.program(api_key, 0, 1)
        return (oldest,) if oldest and asked.data[4:6] == _UNSUPPORTED_VERSION else ()
    return _alternates(asked.catalog, api_key, api_version, asked.direction == "response")


@lru_cache(maxsize=64)
def _alternates(catalog: Catalog, api_key: int, api_version: int, direction: int) -> tuple[Program, ...]:
    return catalog.alternates(api_key, api_version, direction)


@lru_cache(maxsize=8)
def _header_program(catalog: Catalog, direction: int, version: int) -> Program:
    return compile_schema(catalog.headers[direction], version)


def _run(kind: type[AnyMessage], asked: _Asked, program: Program) -> AnyMessage:
    cells, status, offset, op = run(program.code, asked.data, max_cells=asked.limits.message_fields)
    tree = fold(program, cells, asked.data)
    tree.catalog = asked.catalog
    error = Break(STATUSES[status], tree.break_path(op), offset) if status else None
    name = asked.catalog.apis[program.api].name
    return kind(
        *asked[1:5],
        name,
        program,
        tree,
        tree.header,
        tree.body,
        error,
        limits=asked.limits,
        catalog=asked.catalog,
    )


def _make_unread(kind: type[AnyMessage], asked: _Asked, api_key: int, api_version: int) -> AnyMessage:
    is_request = asked.direction == "request"
    api = asked.catalog.apis.get(api_key)
    version = asked.catalog.header_version(api_key, api_version, not is_request)
    if version is None and is_request:
        # A vendor's key. Header 2 is header 1 and tagged fields; unknown tags count against it.
        guess = _header_only(kind, asked, 2)
        version = 1 if guess.tree.unknown_tags or guess.error else 2
    message = _header_only(kind, asked, version or 0)
    if not is_request:
        place = ("", 4)
    else:
        place = ("header:/request_api_version", 2) if api else ("header:/request_api_key", 0)
    message.error = Break("unknown_version" if api else "unknown_api", *place)
    return message


def _header_only(kind: type[AnyMessage], asked: _Asked, header_version: int) -> AnyMessage:
    program = _header_program(asked.catalog, asked.direction == "response", header_version)
    cells, status, offset, op = run(program.code, asked.data)
    tree = fold(program, cells, asked.data)
    error = None
    if status not in (0, _LEFT_OVER):
        error = Break(STATUSES[status], f"header:{tree.break_path(op)}", offset)
    tree.unknown_tags = [tag._replace(path=f"header:{tag.path}") for tag in tree.unknown_tags]
    api = asked.catalog.apis.get(asked.api_key) if asked.api_key is not None else None
    return kind(
        *asked[1:5], api.name if api else "", None, tree, tree.body, None, error, catalog=asked.catalog
    )
