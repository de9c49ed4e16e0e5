"""The source of a live capture: an interface through a tool, a pipe, or a replayed file."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from kwsniff.sources.files import CaptureFile


class LiveSource(Protocol):
    """Packets as they arrive: the bytes of a pcap or pcapng file. The defaults here are for interfaces."""

    tool: str
    interface: str

    @property
    def dropped(self) -> int | None:
        """Packets dropped by the kernel, as known by now; None if still unknown."""

    @property
    def captured(self) -> int | None:
        """Packets written by the tool, as it reports; known after `close`."""

    @property
    def ending(self) -> str | None:
        """Why it ended by itself, in one line; None if it was stopped, and while it runs."""

    @property
    def complete(self) -> bool:
        """Whether the end of the input is normal, not a failure."""
        return False

    @property
    def replayed(self) -> bool:
        """Whether the clock is the capture's, not this machine's."""
        return False

    @property
    def capture(self) -> CaptureFile | None:
        """The file or pipe, if the source is one."""
        return None

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """The requested time range (nanoseconds since the epoch)."""
        return None, None

    @property
    def delay_ns(self) -> int:
        """Maximum delay of a packet from the wire to the reader, including that of a busy machine."""
        return 500_000_000

    def find_watermark(self, read: int, last: int | None, silent_ns: int) -> int | None:
        """The time (nanoseconds since the epoch) before which all packets have been delivered, as far as
        known. `read`: bytes read by now; `last`: time of the last packet in them; `silent_ns`: time since
        the last bytes."""
        return max(last or 0, time.time_ns() - self.delay_ns)

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Takes the facts from closing the capture."""
        return

    def fileno(self) -> int:
        """The read end of the pipe."""

    def request_drops(self) -> None:
        """Asks the tool for its number of dropped packets, if it reports that while it runs."""

    def stop(self) -> None:
        """Stops the capture: the pipe ends after the packets captured so far. May be called more than
        once."""

    def close(self) -> None:
        """Waits for the tool to end, after `stop` or the end of the pipe."""
