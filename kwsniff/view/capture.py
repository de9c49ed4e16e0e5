"""A call in a capture: the bytes of its messages, and its status."""

from dataclasses import dataclass
from typing import Any

Packet = dict[str, Any]
"""A message as returned by ``Analyzer.take_messages``."""


@dataclass(slots=True)
class Call:
    """A completed call, or a message without a call.

    ``id`` is the tables' call_id, None for a message without a call. ``request`` or
    ``response`` may be missing: not captured, not sent, or already delivered. ``status`` and ``reason`` are
    words of the closed lists of docs/anomalies.md.
    """

    id: int | None
    request: Packet | None = None
    response: Packet | None = None
    status: str | None = None
    reason: str | None = None

    @property
    def packets(self) -> tuple[Packet, ...]:
        """Request and response, if present."""
        return tuple(packet for packet in (self.request, self.response) if packet is not None)
