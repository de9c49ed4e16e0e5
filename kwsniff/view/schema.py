"""Schemas that travel inside bytes fields and records (``Catalog.schemas``): bare bodies to JSON."""

from difflib import get_close_matches
from typing import Any, Final

from kwsniff.core.engine import STATUSES, run
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program
from kwsniff.view.document import document, unknown_tags
from kwsniff.view.tree import fold

#: Consumers read newer versions of these like the newest they know and leave the rest alone.
_FORWARD_COMPATIBLE: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")


def check_schema(name: str, *, catalog: Catalog | None = None) -> None:
    """Raises UsageError for a name no schema has."""
    catalog = catalog or load_catalog()
    if name in catalog.schemas:
        return
    near = get_close_matches(name, catalog.schemas, 3, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "kwsniff explain schemas lists them"
    raise UsageError(f"there is no schema '{name}': {hint}")


def decode_schema(data: bytes, name: str, version: int, *, catalog: Catalog | None = None) -> dict[str, Any]:
    """Decode a schema's bare body (without type and version before it); nothing in the bytes raises.

    Returns ``version, body, unknown_tags, error`` as for a message. Raises UsageError for an unknown name.
    """
    catalog = catalog or load_catalog()
    check_schema(name, catalog=catalog)
    newest = catalog.schemas[name].versions[-1]
    is_newer = version > newest and name in _FORWARD_COMPATIBLE
    program = catalog.schema(name, newest if is_newer else version)
    if program is None:
        error = {"code": "unknown_version", "path": "", "offset": 0}
        return {"version": version, "body": None, "unknown_tags": [], "error": error}
    result = _run(program, data, version)
    if is_newer and result["error"] and result["error"]["code"] == "bytes_left_over":
        result["error"] = None
    if result["error"]:
        for other in catalog.schema_alternates(name, version):
            second = _run(other, data, version)
            if not second["error"]:
                return second
    return result


def _run(program: Program, data: bytes, version: int) -> dict[str, Any]:
    cells, status, offset, op = run(program.code, data)
    tree = fold(program, cells, data)
    error = {"code": STATUSES[status], "path": tree.break_path(op), "offset": offset} if status else None
    return {
        "version": version,
        "body": document(tree.body) if tree.body else None,
        "unknown_tags": unknown_tags(tree, data),
        "error": error,
    }
