from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import Buffer

MESSAGE_KINDS: tuple[str, ...]

class Secrets(Protocol):
    """Where keys come from (kwsniff.sources.tls.Secrets)."""

    may_come: bool
    """Whether secrets may come after the packets that need them, which wait for them then."""
    version: int
    """How often something new was learned."""

    def find(
        self,
        hellos: tuple[bytes | None, bytes | None, int | None, int | None, bool, bytes, int, int, bool],
        side: int,
        epoch: int,
    ) -> tuple[str, Callable[[bytes, Any, bytes], bytes], bytes, int] | None: ...
    def add_keylog(self, text: bytes) -> None:
        """A key log that a capture contains."""

class Choice(Protocol):
    """Which calls may be wanted, by what is known before bodies are read
    (kwsniff.filter.pushdown.PushedFilter)."""

    apis: Mapping[int, tuple[int, bytes]]
    """API key -> what its messages teach about other calls (Lesson in core/kafka/choices.pxd), and for each
    of the first 64 versions whether its calls may be wanted."""
    times: tuple[int, int]
    """First and last time of the first bytes of requests, nanoseconds."""
    correlation_ids: tuple[int, int]
    """The lowest and the highest."""

    def may_choose(self, facts: Mapping[str, Any]) -> bool:
        """Whether calls of a connection may be wanted: its columns of api_calls."""

class Analyzer:
    def __init__(
        self,
        compile_program: Callable[[int, int, int], tuple[bytes, tuple[str, ...]] | None],
        api_ranges: Sequence[tuple[int, ...]],
        *,
        ports: Sequence[int] = (),
        limits: Mapping[str, int] | None = None,
        messages: bool = False,
        tables: Sequence[str] = ...,
        compile_early: Callable[[int, int, int], tuple[bytes, tuple[str, ...]] | None] | None = None,
        recognise: Callable[[str, str], int] | None = None,
        bucket: tuple[int, int] | None = None,
        beside: bool = False,
        samples: int = 0,
    ) -> None:
        """`bucket`: (number, number of buckets): only connections of that bucket become rows. The rows of
        all buckets are those of one analyzer without; anomalies of whole captures are bucket 0's.
        `beside`: analyzers of the other buckets are fed the same. `samples`: packets that are kept of every
        capture, to be compared with those of others."""

    def choose_calls(self, choice: Choice) -> None:
        """Only calls that `choice` cannot rule out by their header become rows and messages. Before the first
        capture."""

    def open_tls(self, secrets: Secrets) -> None:
        """Opens TLS with what `secrets` knows; an analyzer that was resumed needs it again."""

    def secrets_came(self) -> None:
        """Goes through what waits for secrets again, where `secrets` has learned some."""

    @property
    def tls_opened(self) -> int:
        """Keys that have opened something."""

    def bound(self, since: int | None, until: int | None) -> None:
        """Only packets from `since` on and before `until` (nanoseconds) of the captures that come are read.
        The others count as `packets_other_time`; one without a time is one of them."""

    def note_holes(self, most: int) -> None:
        """Notes what is missing in streams, in up to `most` bytes."""

    @property
    def holes(self) -> bytes:
        """Eight native numbers of 64 bits for each: connection, sending endpoint, position in its stream,
        bytes, sequence number, whether its receiver acknowledged it, numbers of both ends
        (capture/packet_offsets.pyi)."""

    def fill_holes(self, fills: bytes, data: bytes) -> None:
        """Before the first capture. `fills`: six native int64 for each (connection, sending endpoint,
        position in its stream, bytes, position in `data`, what their segment acknowledges or -1), sorted."""

    def open_capture(self, name: str, *, place: int = 0) -> None:
        """`place`: where it was taken; connections continue in later captures of the same place."""

    @property
    def samples(self) -> tuple[int, bytes]:
        """Of the capture that was opened last: a mask, and two native int64 for each packet whose `mark` has
        none of its bits: a number and the packet's time."""

    def feed(self, data: Buffer, ends: bytes = b"") -> None:
        """`ends`: native int64, where parts of `data` end: as if these were fed until it has `stopped`."""

    def begin_runs(self, own: Buffer, shared: Buffer, *, frames_before: int, capture: int = ...) -> None:
        """Goes to a part of the open capture, whose head was fed: `own` and `shared` are what a Router kept
        of it for this bucket and for all of them, `frames_before` the packets of the parts before it,
        `capture` the descriptor to read in what they name. Raises UsageError for what is none of this."""

    def feed_runs(self, most: int = ...) -> bool:
        """Feeds up to `most` bytes of the runs; whether more of them are left. Raises CaptureError when they
        are not what was walked, or cannot be read again, from the OSError that said so."""

    @property
    def bytes_named(self) -> int:
        """Bytes that `feed_runs` has read in captures."""

    @property
    def stopped(self) -> bool: ...
    @property
    def packets(self) -> int: ...
    @property
    def unfinished(self) -> int | None: ...
    def waiting(self) -> tuple[int, int | None]: ...
    def waits(self, before: int, always: Iterable[int], most: int) -> list[tuple[Any, ...]]:
        """(call id, API key, version, caller, client, its address and port, broker's address and port, asked,
        due, group, member, topics) of at most `most` calls without an answer that was due `before`, or of an
        API in `always`. Times in nanoseconds since the epoch."""

    @property
    def times(self) -> tuple[int | None, int | None]: ...
    def close_capture(self, *, end: str | None = None) -> dict[str, Any]:
        """`end`: the `stop` of the last scan, where runs were fed."""

    @property
    def when_full(self) -> Callable[[], object] | None:
        """Called in the middle of `feed`, `feed_runs` and `finish`, between two calls, once as many rows wait
        as `--limit memory` gives them room for, to take them; with None they wait until they are taken."""

    @when_full.setter
    def when_full(self, take_rows: Callable[[], object] | None) -> None: ...
    @property
    def is_full(self) -> bool: ...
    def drain_messages(
        self,
        ended: Buffer,
        *,
        alone: bool = True,
        most: int | None = None,
    ) -> list[dict[str, Any]]: ...
    def accounting(self, capture: int) -> dict[str, int]: ...
    def late_topics(self) -> dict[str, str]: ...
    def topic_names(self) -> dict[str, str]:
        """Every topic id (22 characters) that a message named so far, and its name."""

    def finish(self) -> None: ...
    def save(self, *, ended: bool = True) -> bytes: ...
    @classmethod
    def resume(
        cls,
        compile_program: Callable[[int, int, int], tuple[bytes, tuple[str, ...]] | None],
        api_ranges: Sequence[tuple[int, ...]],
        state: bytes,
        *,
        compile_early: Callable[[int, int, int], tuple[bytes, tuple[str, ...]] | None] | None = None,
        recognise: Callable[[str, str], int] | None = None,
        tables: Sequence[str] = ...,
    ) -> Analyzer: ...
    def rows(self, table: str) -> int: ...
    def drain(self, table: str) -> list[tuple[Any, ...]]: ...
    def drain_in_order(self, table: str) -> tuple[list[tuple[Any, ...]], bytes]:
        """What `drain` gives, and three native int64 for each run of rows: a packet, a place in its work, the
        first row. By these, rows of analyzers beside each other come in the order of one."""

    @property
    def filled(self) -> int:
        """Bytes of the rows that wait."""

    @property
    def alone(self) -> bool:
        """Whether one analyzer of all connections may have given other rows."""

    def drain_shares(self) -> tuple[float, ...]:
        """The most that was kept since this was last asked, as shares of the bounds of all connections."""

    @property
    def num_topics(self) -> int: ...
    def topics(self) -> dict[str, tuple[str, int]]:
        """Topic id (22 characters) -> its name, and the packet that named it."""
