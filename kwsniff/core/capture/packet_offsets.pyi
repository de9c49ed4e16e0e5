from collections.abc import Mapping

from typing_extensions import Buffer

def endpoint_number(address: bytes, port: int) -> int:
    """The number of one end of a connection: its address (16 bytes, IPv4 mapped into IPv6) and port."""

def connection_number(one: int, other: int) -> int:
    """The number of a connection with these ends, in any order."""

class PacketPlaces:
    """The offsets of the packets of some connections in one capture, which is fed from front to back."""

    def __init__(
        self,
        connections: Buffer | None,
        *,
        limits: Mapping[str, int] | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> None:
        """`connections`: native int64, numbers of connections; None: every packet, whatever it carries."""

    @property
    def stopped(self) -> bool:
        """Whether the rest cannot be read: its record boundaries are lost."""

    def feed(self, data: Buffer) -> tuple[int, bytes, bytes]:
        """How many of these bytes were used: the next ones must begin with the rest. Then eight native int64
        for each packet (offset in `data`, size, frame, connection, sender, payload bytes, TCP flags, time)
        and three for each section, interface and secrets block, and pcap's file header (offset, size, type;
        the header goes as a section). IP fragments are all there; where no segment was read, connection is 0.
        Raises CaptureError for what is no capture."""
