"""Packet-capture protocol analyzer for Apache Kafka."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwsniff.analysis.analyze import analyze as analyze
    from kwsniff.live.sniff import sniff as sniff
    from kwsniff.view.decode import decode as decode

__all__ = ["analyze", "decode", "sniff"]

# Public name -> room. Rooms are imported when they are asked for: `import kwsniff` costs nothing.
_HOMES = {
    "analyze": "kwsniff.analysis.analyze",
    "decode": "kwsniff.view.decode",
    "sniff": "kwsniff.live.sniff",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kwsniff' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
