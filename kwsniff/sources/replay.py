"""Captures instead of an interface: a pipe as it arrives, a file at its own pace or faster.

    standard input, fifo   capture ─ thread ─▶ socket ─▶ reader, as for an interface
    file                   the same, each piece when its first packet is due: the file's clock times `speed`

Captures may be compressed. The end of the input is the normal end of the capture.
"""

import socket
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kwsniff.core.capture.file_splits import Scan, read_head, scan
from kwsniff.errors import CaptureError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile, find_captures
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.times import TimeRange

AS_FAST_AS_IT_GOES: Final = 0.0
"""A speed."""

_SOCKET_BYTES: Final = 1 << 20
_GRAIN_NS: Final = 20_000_000  # closer packets are delivered together
_LEAST_PIECE: Final = 64
_MOST_HEAD: Final = 16 << 20
_PATIENCE_S: Final = 1.0
_PIPE_DELAY_NS: Final = 2_000_000_000  # delay of tcpdump -U and a network in between

Piece = tuple[bytes, int | None]
"""Complete records, and the time of the first."""


class Replay(LiveSource):
    """A capture as a LiveSource. `speed`: 1.0 is the file's own pace, and the only one for a pipe.

    Raises CaptureError for an unreadable capture, UsageError for an empty time range.
    """

    def __init__(self, name: str, *, speed: float = 1.0, times: TimeRange | None = None) -> None:
        self.interface = name
        self.times = times or TimeRange()
        if name == STANDARD_INPUT:
            find_captures([name])
        self.is_file = name != STANDARD_INPUT and stat.S_ISREG(_mode(name))
        self.tool = "file" if self.is_file else "standard input" if name == STANDARD_INPUT else "pipe"
        self._capture = CaptureFile(name)
        if self.times:
            self.times.resolve([name], self._capture)
        self._speed = speed if self.is_file else AS_FAST_AS_IT_GOES
        self._anchor: tuple[int, float] | None = None
        self._next: int | None = None
        self._sent = 0
        self._stopping = threading.Event()
        self._failure: CaptureError | None = None
        self._out, self._in = socket.socketpair()
        for end in (self._in, self._out):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        self._thread = threading.Thread(target=self._pass_on, name="kwsniff-replay", daemon=True)
        self._thread.start()

    @property
    def captured(self) -> int | None:
        """See LiveSource."""
        return None

    @property
    def dropped(self) -> int | None:
        """See LiveSource."""
        return None

    @property
    def capture(self) -> CaptureFile | None:
        """See LiveSource."""
        return self._capture

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """See LiveSource."""
        return self.times.since, self.times.until

    @property
    def replayed(self) -> bool:
        """See LiveSource."""
        return self.is_file

    @property
    def ending(self) -> str | None:
        """See LiveSource."""
        if self._failure is None:
            return None
        return f"{self.interface}: {str(self._failure).removeprefix(f'{self.interface}: ')}"

    @property
    def complete(self) -> bool:
        """See LiveSource."""
        return self.ending is None

    def find_watermark(self, read: int, last: int | None, silent_ns: int) -> int | None:
        """See LiveSource."""
        if last is None:
            return None
        if not self.is_file:
            return max(last, last + silent_ns - _PIPE_DELAY_NS)
        if not self._speed or self._anchor is None or read < self._sent or not self._thread.is_alive():
            return last
        begin, at = self._anchor
        now = begin + int((time.monotonic() - at) * self._speed * 1e9)
        return max(last, now if self._next is None else min(now, self._next))

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """See LiveSource."""
        self.times.add_facts(facts)

    def fileno(self) -> int:
        """See LiveSource."""
        return self._out.fileno()

    def request_drops(self) -> None:
        """See LiveSource."""

    def stop(self) -> None:
        """See LiveSource. The thread that waits for the pipe's next bytes keeps waiting, and discards
        them."""
        self._stopping.set()
        with suppress(OSError):
            self._in.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """See LiveSource."""
        self.stop()
        self._out.close()
        self._thread.join(None if self.is_file else _PATIENCE_S)

    def _pass_on(self) -> None:
        try:
            pieces = pace(self._capture.buffers()) if self._speed else _whole(self._capture.buffers())
            for data, first in pieces:
                if not self._await(first):
                    break
                self._sent += len(data)
                self._in.sendall(data)
        except CaptureError as error:
            self._failure = error
        except OSError:  # the reader has closed the socket
            pass
        finally:
            self._in.close()
            if not self._stopping.is_set() or self.is_file:
                self._capture.close()

    def _await(self, due: int | None) -> bool:
        """Waits until that time; False if it was stopped before."""
        since, until = self.times.since, self.times.until
        outside = due is not None and ((since or 0) > due or (until is not None and due >= until))
        if due is None or not self._speed or outside:
            return not self._stopping.is_set()
        if self._anchor is None:
            self._anchor = due, time.monotonic()
        begin, at = self._anchor
        self._next = due
        return not self._stopping.wait(max((due - begin) / 1e9 / self._speed - (time.monotonic() - at), 0.0))


def is_capture(name: str) -> bool:
    """Whether the name is a capture (standard input, a file, a pipe), not an interface."""
    return name == STANDARD_INPUT or Path(name).exists()


def _mode(name: str) -> int:
    try:
        mode = Path(name).stat().st_mode
    except OSError as error:
        raise CaptureError(f"{name}: no such file; check the path") from error
    if stat.S_ISDIR(mode):
        raise CaptureError(f"{name}: is a directory; give a capture in it")
    return mode


def _whole(buffers: Iterable[memoryview]) -> Iterator[Piece]:
    for buffer in buffers:
        yield bytes(buffer), None


def pace(buffers: Iterable[memoryview]) -> Iterator[Piece]:
    """The bytes of a capture in pieces of complete records, of 20 ms or less; other bytes and incomplete
    records are unchanged."""
    head, rest = b"", bytearray()
    for buffer in buffers:
        rest += buffer
        if not head and len(rest) < _MOST_HEAD:
            head = read_head(rest)
            if head:
                yield head, None
                del rest[: len(head)]
        if not head or not rest:
            continue
        data = head + bytes(rest)
        part = scan(head, data, 0, len(data), 1)
        yield from _parts(head, data, part)
        head = part.next_head or head
        del rest[: part.end - part.begin]
        if part.stop == "damaged":
            break
    if rest:
        yield bytes(rest), None
    for buffer in buffers:  # after damaged bytes
        yield bytes(buffer), None


def _parts(head: bytes, data: bytes, part: Scan) -> Iterator[Piece]:
    """Splits a piece in halves while that shortens its time range."""
    first, last = part.first_time, part.last_time
    if part.packets < 2 or first is None or last is None or last - first <= _GRAIN_NS:
        if part.end > part.begin:
            yield data[part.begin : part.end], first
        return
    size = (part.end - part.begin) // 2
    left = scan(head, data, part.begin, part.begin + size, 1)
    while left.end >= part.end and size > _LEAST_PIECE:
        size //= 2
        left = scan(head, data, part.begin, part.begin + size, 1)
    if left.end >= part.end or left.end <= part.begin:
        yield data[part.begin : part.end], first
        return
    yield from _parts(head, data, left)
    head = left.next_head or head
    yield from _parts(head, data, scan(head, data, left.end, part.end, 1))
