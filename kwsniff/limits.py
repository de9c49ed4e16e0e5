"""Every bound that kwsniff keeps on memory and work. Reaching one is an anomaly, never a crash."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from kwsniff.errors import UsageError
from kwsniff.texts import suggested

OF_ALL_CONNECTIONS: Final = (
    "memory", "datagrams", "connections", "held_bytes_total", "frame_kept_bytes_total", "waiting_bytes_total",
    "topic_ids",
)  # fmt: skip
"""Bounds over all connections together: where several analyses share them, each holds to these by itself."""

_MIB = 1 << 20
_TIB = 1 << 40
_MOST_MEMORY = _TIB
_MOST_INT32 = (1 << 31) - 1
_MB = 1_000_000


def _bound(value: int, greatest: int, least: int = 1) -> Any:
    """A default, and the greatest and the least value for which the compiled rooms' numbers hold."""
    return field(default=value, metadata={"greatest": greatest, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Defaults suit one analysis on one machine; every field can be set by name."""

    memory: int = _bound(400 * _MB, _MOST_MEMORY, 200 * _MB)
    """Memory of an analysis, the interpreter and its libraries included, which are about 150 MB of it.
    Below 300 MB, findings may take up to that."""
    packet_bytes: int = _bound(16 * _MIB, _MOST_INT32)
    """Captured bytes of one packet, or of one pcapng block that is read; a larger one: a damaged file."""
    interfaces: int = _bound(65_536, 1_048_576)
    """Interfaces of one pcapng section that are known; packets of further ones are passed over."""
    datagrams: int = _bound(64, 65_536)
    """IP datagrams whose fragments are put together at a time."""
    connections: int = _bound(50_000, _MOST_INT32)
    """Connections known at a time; beyond it one that has ended is forgotten, or else the one that was silent
    longest is closed as `evicted`."""
    idle_seconds: int = _bound(14_400, 4_000_000_000)
    """Seconds of the capture's own time without a packet after which a connection is closed as `evicted`."""
    ended_seconds: int = _bound(240, 4_000_000_000)
    """Seconds of the capture's own time without a packet after which a connection that has ended is
    forgotten: by then nothing of it is under way (RFC 9293: twice the longest life of a segment)."""
    held_bytes: int = _bound(16 * _MIB, _MOST_MEMORY)
    """Payload held per direction: out of order, or behind a reset that may be taken back."""
    held_segments: int = _bound(4096, _MOST_INT32)
    """Segments held per direction, likewise."""
    held_bytes_total: int = _bound(64 * _MIB, _MOST_MEMORY)
    """Payload held by all connections together, likewise."""
    gap_patience: int = _bound(16, _MOST_INT32)
    """Packets of a connection that may pass before bytes the receiver acknowledged count as not captured."""
    frame_bytes: int = _bound(512 * _MIB, _MOST_INT32)
    """Length of a Kafka frame that is believed; brokers accept 100 MiB unless told otherwise."""
    frame_kept_bytes: int = _bound(64 * _MIB, _MOST_INT32)
    """Bytes kept of one frame; a longer one is decoded as far as it was kept."""
    frame_kept_bytes_total: int = _bound(128 * _MIB, _MOST_MEMORY)
    """Bytes kept of all unfinished frames together."""
    cells: int = _bound(4_000_000, _MOST_INT32)
    """Fields decoded of one frame."""
    outstanding_calls: int = _bound(4096, 16_777_216)
    """Requests of one connection that wait for their response."""
    parked_responses: int = _bound(256, 65_536)
    """Responses of one connection that wait for a request that the capture has not shown yet."""
    parked_bytes: int = _bound(4 * _MIB, _MOST_MEMORY)
    """Bytes of those responses."""
    waiting_bytes_total: int = _bound(64 * _MIB, _MOST_MEMORY)
    """Bytes of all requests and responses that wait for each other; beyond it the oldest ones go."""
    call_facts_bytes: int = _bound(65_536, _MOST_INT32 // 2)
    """Client id, group and topic names kept of one waiting request."""
    hits_per_message: int = _bound(65_536, _MOST_INT32)
    """Errors, partitions, record batches of one message that get rows of their own; more are only counted."""
    session_partitions: int = _bound(65_536, 16_777_216)
    """Partitions of a fetch session that are followed; of a larger one nobody knows what it asks for."""
    tls_held_bytes: int = _bound(_MIB, _MOST_INT32)
    """Bytes of a direction inside TLS that wait for secrets that may still come, as live."""
    tls_tries: int = _bound(20_000, _MOST_INT32)
    """TLS records that are tried after a loss until one opens."""
    search_bytes: int = _bound(_MIB, _MOST_MEMORY)
    """Bytes of a connection without handshake in which the beginning of a request is looked for."""
    topic_ids: int = _bound(262_144, 16_777_216)
    """Topic ids whose names are remembered."""
    tcp_events: int = _bound(10_000, _MOST_INT32)
    """Events of one connection that are listed in `tcp_events`."""
    twin_candidates: int = _bound(200_000, _MOST_INT32)
    """Connections with the numbers or the messages of another one that are compared in search of twins."""
    decompressed_bytes: int = _bound(128 * _MIB, _MOST_MEMORY)
    """Bytes to which the contents of one message may decompress in `show` and `decode`; more stays closed."""
    shown_fields: int = _bound(1_000_000, _MOST_INT32)
    """Fields of one message that `show` decodes; it takes some hundred bytes for each."""
    shown_records: int = _bound(100_000, _MOST_INT32)
    """Records of one message that `show` and `decode` open."""
    finding_rows: int = _bound(500_000, _MOST_INT32)
    """Rows of all tables in which `live` looks for findings; of more, the oldest are left out."""

    @classmethod
    def with_changes(cls, changes: dict[str, int]) -> "Limits":
        """The defaults with `changes` put in. Raises UsageError for an unknown name, for what is no whole
        number, and for a value outside the limit's own bounds."""
        ranges = cls.ranges()
        for name, value in changes.items():
            if name not in ranges:
                raise UsageError(f"no limit is called {name!r}; {suggested(name, sorted(ranges))}")
            least, greatest = ranges[name]
            if not isinstance(value, int) or isinstance(value, bool):
                raise UsageError(f"limit {name} must be a whole number, not {value!r}")
            if not least <= value <= greatest:
                shown = value if abs(value) < 1 << 80 else "a number of many digits"
                raise UsageError(f"limit {name} must be {least} to {greatest}, not {shown}")
        return cls(**changes)

    @classmethod
    def ranges(cls) -> dict[str, tuple[int, int]]:
        """Name to least and greatest value."""
        return {bound.name: (bound.metadata["least"], bound.metadata["greatest"]) for bound in fields(cls)}

    def as_dict(self) -> dict[str, int]:
        """Name to value, in the order above."""
        return asdict(self)
