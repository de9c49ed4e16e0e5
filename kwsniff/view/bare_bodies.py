"""Schemas inside bytes fields and records (``Catalog.schemas``): bare bodies to trees and JSON."""

from typing import Any, Final, NamedTuple

from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program
from kwsniff.view.json_values import document, unknown_tags
from kwsniff.view.tree import Tree, fold

#: Consumers read newer versions of these as the newest they know, and ignore the rest.
_FORWARD_COMPATIBLE: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")


class Reading(NamedTuple):
    """A schema's body as far as it was read; ``tree`` is None for an unknown version."""

    tree: Tree | None
    error: dict[str, Any] | None
    version: int


def check_schema(name: str, *, catalog: Catalog | None = None) -> None:
    """Raises UsageError for an unknown schema."""
    catalog = catalog or load_catalog()
    if name in catalog.schemas:
        return
    from difflib import get_close_matches  # needed for an error message only

    near = get_close_matches(name, catalog.schemas, 3, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "kwsniff explain schemas lists them"
    raise UsageError(f"unknown schema '{name}': {hint}")


def decode_schema(data: bytes, name: str, version: int, *, catalog: Catalog | None = None) -> dict[str, Any]:
    """Decode a schema's bare body (without type and version before it); no bytes raise an exception.

    Returns ``version, body, unknown_tags, error`` as for a message. Raises UsageError for an unknown name.
    """
    catalog = catalog or load_catalog()
    check_schema(name, catalog=catalog)
    tree, error, _ = read_schema(data, name, version, catalog)
    return {
        "version": version,
        "body": document(tree.body) if tree and tree.body else None,
        "unknown_tags": unknown_tags(tree, data) if tree else [],
        "error": error,
    }


def read_schema(data: bytes, name: str, version: int, catalog: Catalog) -> Reading:
    """The tree of a known schema's bare body; early-access layouts are tried where the newest breaks."""
    newest = catalog.schemas[name].versions[-1]
    is_newer = version > newest and name in _FORWARD_COMPATIBLE
    program = catalog.schema(name, newest if is_newer else version)
    if program is None:
        return Reading(None, {"code": "unknown_version", "path": "", "offset": 0}, version)
    first = _run(program, data)
    if is_newer and first.error and first.error["code"] == "bytes_left_over":
        return first._replace(error=None)
    if first.error:
        for other in catalog.schema_alternates(name, version):
            second = _run(other, data)
            if not second.error:
                return second
    return first


def _run(program: Program, data: bytes) -> Reading:
    cells, status, offset, op = run(program.code, data)
    tree = fold(program, cells, data)
    error = {"code": STATUSES[status], "path": tree.break_path(op), "offset": offset} if status else None
    return Reading(tree, error, program.version)
