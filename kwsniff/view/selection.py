"""Which calls a reader returns, decided by the core's rows of api_calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kwsniff.core.declared import COLUMNS as DECLARED
from kwsniff.sources.files import CaptureFile
from kwsniff.view.columns import numbers, words

if TYPE_CHECKING:
    from kwsniff.core.analyzer import Choice

COLUMNS: Final = tuple(name for name, _, _ in DECLARED["api_calls"])
"""Of api_calls, as the core delivers them."""

Packet = dict[str, Any]
"""A message as returned by ``Analyzer.drain_messages``."""


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


class Ended(NamedTuple):
    """What rows say of calls that are over."""

    calls: bytes
    """For Analyzer.drain_messages."""
    statuses: dict[int, tuple[str, str | None]]
    """Status and reason of calls that are handed out."""
    waiting: frozenset[int] = frozenset()
    """Of these, the ones that names of topics decide which no message has given yet."""


class Selection(Protocol):
    """Which calls are wanted."""

    @property
    def tables(self) -> Sequence[str]:
        """Of the core, which it needs."""

    @property
    def alone(self) -> bool:
        """Whether messages without a call are wanted."""

    @property
    def numbers(self) -> frozenset[int] | None:
        """The numbers of all calls that may be wanted, where they are known."""

    def begin(self, captures: Sequence[str], opened: CaptureFile) -> "Choice | None":
        """Before the first capture, `opened`, is read: what the core decides by headers."""

    def select(self, tables: Mapping[str, Sequence[Any]]) -> Ended:
        """Rows that `Analyzer.take` returned."""

    def select_late(self, names: Mapping[str, str]) -> frozenset[int]:
        """Which of the calls that waited are wanted. `names`: topic id -> the name that later messages
        gave."""


class EveryCall:
    """All calls, and messages without one."""

    tables = ("api_calls",)
    alone = True
    numbers = None

    def begin(self, captures: Sequence[str], opened: CaptureFile) -> None:
        """The core decides nothing."""

    def select(self, tables: Mapping[str, Sequence[Any]]) -> Ended:
        """Every row is wanted."""
        by_name = dict(zip(COLUMNS, tables["api_calls"], strict=True))
        ids = numbers(by_name["call_id"])
        if not len(ids):
            return Ended(b"", {})
        both = [1] * (2 * len(ids))
        both[::2] = ids
        rows = range(len(ids))
        statuses, reasons = (words(by_name[name], name, rows) for name in ("status", "reason"))
        rows_ = zip(ids, statuses, reasons, strict=True)
        return Ended(
            Struct(f"={len(both)}q").pack(*both),
            {number: (status or "", reason) for number, status, reason in rows_},
        )

    def select_late(self, names: Mapping[str, str]) -> frozenset[int]:
        """None waits."""
        return frozenset()
