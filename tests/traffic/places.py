"""The same conversation captured at two places, under other addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from tests.traffic.files import Frame

End = tuple[str, int]


def renamed(packet: bytes, ends: Mapping[End, End]) -> bytes:
    """An IPv4 packet without options, its ends called otherwise."""
    found = [
        (str(ip_address(packet[at : at + 4])), int.from_bytes(packet[port : port + 2], "big"))
        for at, port in ((12, 20), (16, 22))
    ]
    source, target = (ends.get(end, end) for end in found)
    addresses = b"".join(ip_address(end[0]).packed for end in (source, target))
    ports = b"".join(end[1].to_bytes(2, "big") for end in (source, target))
    return packet[:12] + addresses + ports + packet[24:]


def interleaved(
    streams: Iterable[Sequence[bytes]], *, start_ns: int, step_ns: int, behind_ns: int
) -> list[Frame]:
    """Packets of several places, those of each next one `behind_ns` later; in the order of their times."""
    frames = [
        Frame(start_ns + number * step_ns + place * behind_ns, packet, len(packet))
        for place, packets in enumerate(streams)
        for number, packet in enumerate(packets)
    ]
    return sorted(frames, key=lambda frame: frame.time_ns)
