"""A call as a capture shows it: its messages' bytes, and what became of it."""

from dataclasses import dataclass
from typing import Any

Packet = dict[str, Any]
"""A message as ``Analyzer.take_messages`` gives it."""


@dataclass(slots=True)
class Call:
    """A call that is over, or a message that belongs to none.

    ``id`` is the tables' call_id, None for a message without a call. ``request`` or
    ``response`` may be missing: not captured, not sent, or handed out before. ``status`` and ``reason`` are
    words of the closed lists of docs/anomalies.md.
    """

    id: int | None
    request: Packet | None = None
    response: Packet | None = None
    status: str | None = None
    reason: str | None = None

    @property
    def packets(self) -> tuple[Packet, ...]:
        """Request and response, as far as they are there."""
        return tuple(packet for packet in (self.request, self.response) if packet is not None)
