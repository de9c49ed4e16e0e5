"""What a live capture is read from: an interface through a tool, a pipe, a file that is replayed."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from kwsniff.sources.files import CaptureFile


class LiveSource(Protocol):
    """Packets as they come: the bytes of a pcap or pcapng file. What is given here holds for interfaces."""

    tool: str
    interface: str

    @property
    def dropped(self) -> int | None:
        """Packets the kernel dropped, as far as known by now; None where nobody says it yet."""

    @property
    def captured(self) -> int | None:
        """Packets the tool says it wrote; known after `close`."""

    @property
    def ending(self) -> str | None:
        """Why it ended by itself, in one line; None when it was stopped, and while it runs."""

    @property
    def complete(self) -> bool:
        """Whether the end of the input is no failure: there is no more of it."""
        return False

    @property
    def replayed(self) -> bool:
        """Whether the time that counts is the capture's, and not this machine's."""
        return False

    @property
    def capture(self) -> CaptureFile | None:
        """Where the bytes are those of a file or pipe: that."""
        return None

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Only packets from a time on and before another are asked for (nanoseconds since the epoch)."""
        return None, None

    @property
    def delay_ns(self) -> int:
        """How long a packet may be under way from the wire to who reads, with what a busy machine adds."""
        return 500_000_000

    def reached(self, read: int, last: int | None, silent_ns: int) -> int | None:
        """The time (nanoseconds since the epoch) before which every packet has been handed over, as far as
        can be told. `read`: bytes read by now, `last`: time of the last packet in them, `silent_ns`: how long
        nothing has come."""
        return max(last or 0, time.time_ns() - self.delay_ns)

    def told(self, facts: Mapping[str, Any]) -> None:
        """What closing the capture told."""
        return

    def fileno(self) -> int:
        """The end of the pipe that is read."""

    def ask(self) -> None:
        """Lets the tool say how many packets were dropped, where it can while it runs."""

    def stop(self) -> None:
        """No further packets: the pipe ends after those that were captured. May be called more than once."""

    def close(self) -> None:
        """Waits for the tool to end, after `stop` or the end of the pipe."""
