"""All limits on memory and work. A reached limit is an anomaly, never a crash."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from kwsniff.errors import UsageError
from kwsniff.texts import suggest

OF_ALL_CONNECTIONS: Final = (
    "memory", "ip_reassembly", "connections", "reorder_bytes_total", "frame_kept_bytes_total",
    "in_flight_bytes_total",
    "topic_ids",
)  # fmt: skip
"""Limits over all connections; each of several parallel analyzers applies them separately."""

_MIB = 1 << 20
_TIB = 1 << 40
_MOST_MEMORY = _TIB
_MOST_INT32 = (1 << 31) - 1
_MB = 1_000_000


def _bound(value: int, greatest: int, least: int = 1) -> Any:
    """A default, and the range of values that the compiled core supports."""
    return field(default=value, metadata={"greatest": greatest, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The defaults suit one analysis on one machine. Every limit can be set by name."""

    memory: int = _bound(400 * _MB, _MOST_MEMORY, 200 * _MB)
    """Memory of an analysis, including about 150 MB for the interpreter and its libraries.
    With less than 300 MB, findings may still use up to 300 MB."""
    packet_bytes: int = _bound(16 * _MIB, _MOST_INT32)
    """Maximum size of a captured packet or a pcapng block; with a larger one the file counts as damaged."""
    interfaces: int = _bound(65_536, 1_048_576)
    """Interfaces per pcapng section; packets of further interfaces are skipped."""
    ip_reassembly: int = _bound(64, 65_536)
    """IP datagrams in reassembly at a time."""
    connections: int = _bound(50_000, _MOST_INT32)
    """Size of the connection table. When it is full, kwsniff removes an ended connection, or else closes the
    one idle for longest as `evicted`."""
    idle_seconds: int = _bound(14_400, 4_000_000_000)
    """Seconds of capture time without a packet after which a connection is closed as `evicted`."""
    ended_seconds: int = _bound(240, 4_000_000_000)
    """Seconds of capture time without a packet after which an ended connection is removed: no packet of it
    is in flight by then (RFC 9293: twice the maximum segment lifetime)."""
    reorder_bytes: int = _bound(16 * _MIB, _MOST_MEMORY)
    """Bytes per direction in the reorder queue: out-of-order segments, and segments after an RST that may
    not be valid."""
    reorder_segments: int = _bound(4096, _MOST_INT32)
    """Segments per direction in the reorder queue."""
    reorder_bytes_total: int = _bound(64 * _MIB, _MOST_MEMORY)
    """Bytes in the reorder queues of all connections."""
    reorder_packets: int = _bound(16, _MOST_INT32)
    """Packets of a connection to wait for missing bytes that the receiver acknowledged, before they count
    as not captured."""
    frame_bytes: int = _bound(512 * _MIB, _MOST_INT32)
    """Maximum size of a Kafka frame; the default of brokers is 100 MiB."""
    frame_kept_bytes: int = _bound(64 * _MIB, _MOST_INT32)
    """Bytes kept of one frame; a longer frame is decoded up to this size."""
    frame_kept_bytes_total: int = _bound(128 * _MIB, _MOST_MEMORY)
    """Bytes kept of all incomplete frames."""
    message_fields: int = _bound(4_000_000, _MOST_INT32)
    """Fields decoded per frame."""
    in_flight_requests: int = _bound(4096, 16_777_216)
    """In-flight requests per connection."""
    orphan_responses: int = _bound(256, 65_536)
    """Responses per connection kept until their request is read."""
    orphan_bytes: int = _bound(4 * _MIB, _MOST_MEMORY)
    """Bytes of those responses per connection."""
    in_flight_bytes_total: int = _bound(64 * _MIB, _MOST_MEMORY)
    """Bytes of all requests and responses that wait for their counterpart; beyond this, the oldest are
    dropped."""
    request_context_bytes: int = _bound(65_536, _MOST_INT32 // 2)
    """Bytes of client id, group and topic names kept per in-flight request."""
    rows_per_message: int = _bound(65_536, _MOST_INT32)
    """Rows per message for errors, partitions and record batches; further ones are only counted."""
    session_partitions: int = _bound(65_536, 16_777_216)
    """Partitions tracked per fetch session; kwsniff does not track the partitions of larger sessions."""
    tls_buffer_bytes: int = _bound(_MIB, _MOST_INT32)
    """Encrypted bytes per direction that wait for TLS secrets, for example during live capture."""
    tls_tries: int = _bound(20_000, _MOST_INT32)
    """TLS records to try after a loss until one decrypts."""
    resync_bytes: int = _bound(_MIB, _MOST_MEMORY)
    """Bytes searched for the start of a request on a connection without handshake."""
    topic_ids: int = _bound(262_144, 16_777_216)
    """Topic ids with a known name."""
    tcp_events: int = _bound(10_000, _MOST_INT32)
    """Events per connection in `tcp_events`."""
    duplicate_candidates: int = _bound(200_000, _MOST_INT32)
    """Connections with the same sequence numbers or messages as another that are compared to detect
    duplicates."""
    decompressed_bytes: int = _bound(128 * _MIB, _MOST_MEMORY)
    """Maximum decompressed size of one message in `show` and `decode`; beyond this, contents stay
    compressed."""
    shown_fields: int = _bound(1_000_000, _MOST_INT32)
    """Fields per message that `show` decodes, at a few hundred bytes of memory each."""
    shown_records: int = _bound(100_000, _MOST_INT32)
    """Records per message that `show` and `decode` decode."""
    finding_rows: int = _bound(500_000, _MOST_INT32)
    """Rows of all tables that `live` evaluates for findings; beyond this, the oldest are left out."""

    @classmethod
    def with_changes(cls, changes: dict[str, int]) -> "Limits":
        """The defaults with `changes` applied. Raises UsageError for an unknown name, a value that is not a
        whole number, or one out of range."""
        ranges = cls.ranges()
        for name, value in changes.items():
            if name not in ranges:
                raise UsageError(f"unknown limit {name!r}; {suggest(name, sorted(ranges))}")
            least, greatest = ranges[name]
            if not isinstance(value, int) or isinstance(value, bool):
                raise UsageError(f"limit {name} must be a whole number, not {value!r}")
            if not least <= value <= greatest:
                shown = value if abs(value) < 1 << 80 else "a number of many digits"
                raise UsageError(f"limit {name} must be from {least} to {greatest}, not {shown}")
        return cls(**changes)

    @classmethod
    def ranges(cls) -> dict[str, tuple[int, int]]:
        """Name to minimum and maximum."""
        return {bound.name: (bound.metadata["least"], bound.metadata["greatest"]) for bound in fields(cls)}

    def as_dict(self) -> dict[str, int]:
        """Name to value, in the order of the fields."""
        return asdict(self)


def limit_texts() -> dict[str, str]:
    """Name -> the text under its line in this file, which docs/limits.md and `kwsniff explain` show."""
    import ast
    from itertools import pairwise
    from pathlib import Path

    module = ast.parse(Path(__file__).read_text("utf-8"))
    body = next(node for node in module.body if isinstance(node, ast.ClassDef)).body
    return {
        bound.target.id: " ".join(str(text.value.value).split())
        for bound, text in pairwise(body)
        if isinstance(bound, ast.AnnAssign) and isinstance(bound.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }  # fmt: skip
