"""Every bound that kwsniff keeps on memory and work. Reaching one is an anomaly, never a crash."""

from dataclasses import asdict, dataclass, fields

from kwsniff.errors import UsageError

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Defaults suit one analysis on one machine; every field can be set by name."""

    packet_bytes: int = 16 * _MIB
    """Captured bytes of one packet, or of one pcapng block that is read; a larger one: a damaged file."""
    datagrams: int = 64
    """IP datagrams whose fragments are put together at a time."""
    connections: int = 50_000
    """Connections known at a time; beyond it the one that was silent longest is closed as `evicted`."""
    idle_seconds: int = 14_400
    """Seconds of the capture's own time without a packet after which a connection is closed as `evicted`."""
    held_bytes: int = 16 * _MIB
    """Out-of-order payload held per direction."""
    held_segments: int = 4096
    """Out-of-order segments held per direction."""
    held_bytes_total: int = 64 * _MIB
    """Out-of-order payload held by all connections together."""
    gap_patience: int = 16
    """Packets of a connection that may pass before bytes the receiver acknowledged count as not captured."""
    frame_bytes: int = 512 * _MIB
    """Length of a Kafka frame that is believed; brokers accept 100 MiB unless told otherwise."""
    frame_kept_bytes: int = 64 * _MIB
    """Bytes kept of one frame; a longer one is decoded as far as it was kept."""
    frame_kept_bytes_total: int = 128 * _MIB
    """Bytes kept of all unfinished frames together."""
    cells: int = 4_000_000
    """Fields decoded of one frame."""
    outstanding_calls: int = 4096
    """Requests of one connection that wait for their response."""
    parked_responses: int = 256
    """Responses of one connection that wait for a request that the capture has not shown yet."""
    parked_bytes: int = 4 * _MIB
    """Bytes of those responses."""
    waiting_bytes_total: int = 64 * _MIB
    """Bytes of all requests and responses that wait for each other; beyond it the oldest ones go."""
    call_facts_bytes: int = 65_536
    """Client id, group and topic names kept of one waiting request."""
    hits_per_message: int = 65_536
    """Errors, partitions, record batches of one message that get rows of their own; more are only counted."""
    session_partitions: int = 4096
    """Partitions of a fetch session that are followed; of a larger one nobody knows what it asks for."""
    search_bytes: int = _MIB
    """Bytes of a connection without handshake in which the beginning of a request is looked for."""
    topic_ids: int = 262_144
    """Topic ids whose names are remembered."""
    decompressed_bytes: int = 128 * _MIB
    """Bytes to which the contents of one message may decompress in `show` and `decode`; more stays closed."""
    shown_fields: int = 1_000_000
    """Fields of one message that `show` decodes; it takes some hundred bytes for each."""
    shown_records: int = 100_000
    """Records of one message that `show` and `decode` open."""

    @classmethod
    def with_changes(cls, changes: dict[str, int]) -> "Limits":
        """The defaults with `changes` put in. Raises UsageError for an unknown name or a value below 1."""
        known = {field.name for field in fields(cls)}
        for name, value in changes.items():
            if name not in known:
                raise UsageError(f"no limit is called {name!r}; there are: {', '.join(sorted(known))}")
            if value < 1:
                raise UsageError(f"limit {name} must be at least 1, not {value}")
        return cls(**changes)

    def as_dict(self) -> dict[str, int]:
        """Name to value, in the order above."""
        return asdict(self)
