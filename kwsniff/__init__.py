"""Packet-capture protocol analyzer for Apache Kafka."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwsniff.errors import CaptureError as CaptureError
from kwsniff.errors import KwsniffError as KwsniffError
from kwsniff.errors import LayoutError as LayoutError
from kwsniff.errors import OutputError as OutputError
from kwsniff.errors import UsageError as UsageError

if TYPE_CHECKING:
    from kwsniff.analysis.analyze import analyze as analyze
    from kwsniff.analysis.call_batches import calls as calls
    from kwsniff.analysis.sql import sql as sql
    from kwsniff.analysis.stored_run import open as open
    from kwsniff.analysis.why import why as why
    from kwsniff.live.sniff import sniff as sniff
    from kwsniff.view.decode import decode as decode

    __version__: str

__all__ = [
    "CaptureError",
    "KwsniffError",
    "LayoutError",
    "OutputError",
    "UsageError",
    "analyze",
    "calls",
    "decode",
    "open",
    "sniff",
    "sql",
    "why",
]

# Public name -> module. Modules are imported on first use, so that `import kwsniff` is cheap.
_HOMES = {
    "analyze": "kwsniff.analysis.analyze",
    "calls": "kwsniff.analysis.call_batches",
    "decode": "kwsniff.view.decode",
    "open": "kwsniff.analysis.stored_run",
    "sniff": "kwsniff.live.sniff",
    "sql": "kwsniff.analysis.sql",
    "why": "kwsniff.analysis.why",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module 'kwsniff' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if not is_not_compiled(error):
            raise
        raise ImportError(NOT_COMPILED) from None


_FOLDER = Path(__file__).parent
NOT_COMPILED = (
    f"{_FOLDER} is not compiled for this Python, and shadows an installed kwsniff: run Python in "
    f"another folder, or compile this one: pip install -e {_FOLDER.parent}"
)
"""Error message in a clone without compiled modules."""


def is_not_compiled(error: ImportError) -> bool:
    """Whether a compiled module is missing."""
    return (error.name or "").startswith("kwsniff.core")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("kwsniff")
    except metadata.PackageNotFoundError:
        raise AttributeError("kwsniff runs from a source tree and is not installed: no version") from None
