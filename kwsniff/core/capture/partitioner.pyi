from collections.abc import Callable, Mapping

from typing_extensions import Buffer

from kwsniff.core.capture.file_splits import Scan

class Router:
    """Walks captures, one behind the other, and keeps every record for the bucket of its connection.

    What it keeps are parts: `cut` ends one, for all buckets; a part belongs to one capture. The caller
    that feeds asks `waiting`, cuts, and takes, so that memory stays bounded.
    """

    def __init__(
        self,
        num_buckets: int,
        limits: Mapping[str, int] | None = None,
        *,
        since: int | None = None,
        until: int | None = None,
        samples: int = 0,
    ) -> None:
        """`limits` and `samples` as the Analyzer's, `since` and `until` as for its `bound`; 0 buckets:
        nothing is kept.
        Raises UsageError for more than 65536."""

    def open(self, head: bytes, begin: int = 0, end: int | None = None, *, least_named: int = 0) -> None:
        """A walk from boundary `begin` (0: behind the head) to the first boundary at or after `end` (None:
        until no more is fed). Where a bucket gets this number of bytes of neighbours, `least_named`, it gets
        their offset instead (shuffle_windows.pyx); 0: never. Raises UsageError for what is not a head."""

    def feed(self, data: Buffer) -> bool:
        """Takes the next bytes from `begin` on, in pieces of any size; whether more of them are wanted. The
        interpreter is not held. Raises CaptureError for what is not a capture."""

    @property
    def packets(self) -> int:
        """Of the current part."""

    @property
    def waiting(self) -> int:
        """Bytes that are kept, or named, and were not taken."""

    @property
    def named(self) -> int:
        """Bytes of those that are named."""

    def cut(self) -> tuple[int, bytes]:
        """Ends the current part: its packets, and native int64, where it ends in what is kept of every
        bucket and, last, of what all of them need."""

    def take(self, write: Callable[[memoryview], object]) -> None:
        """Hands over what is kept of every bucket that has any, and last what all of them need; a memoryview
        is valid during the call. The next part begins with nothing kept. Raises UsageError without a cut."""

    def close(self) -> Scan:
        """Ends the walk; what is kept stays, and is to be cut before another capture is opened."""
