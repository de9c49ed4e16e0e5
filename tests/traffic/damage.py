"""Ways to hurt a capture: each takes packets and gives packets, so that they chain."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from tests.traffic.tcp import MODULUS, Packet

Packets = Sequence[Packet]


def retimed(packets: Packets) -> list[Packet]:
    """The same packets, in this order, with the sorted times: what a capture of this order would say."""
    times = sorted(packet.time_ns for packet in packets)
    return [replace(packet, time_ns=time) for packet, time in zip(packets, times, strict=True)]


def slowed(packets: Packets, factor: int) -> list[Packet]:
    """The same packets, so many times further apart."""
    start = min(packet.time_ns for packet in packets)
    return [replace(packet, time_ns=start + (packet.time_ns - start) * factor) for packet in packets]


def drop(packets: Packets, indexes: Container[int]) -> list[Packet]:
    """Loses the packets at these indexes."""
    return [packet for index, packet in enumerate(packets) if index not in indexes]


def drop_share(packets: Packets, share: float, seed: int) -> list[Packet]:
    """Loses about ``share`` of all packets."""
    dice = random.Random(seed)
    return [packet for packet in packets if dice.random() >= share]


def duplicate(packets: Packets, chosen: Callable[[Packet], bool], later: int = 3) -> list[Packet]:
    """Sends every chosen packet again ``later`` places on (a retransmission)."""
    out: list[tuple[float, int, Packet]] = []
    for index, packet in enumerate(packets):
        out.append((index, 0, packet))
        if chosen(packet):
            out.append((index + later + 0.5, 1, packet))
    out.sort(key=lambda row: row[:2])
    return retimed([packet for _, _, packet in out])


def reorder(packets: Packets, distance: int, seed: int) -> list[Packet]:
    """Shuffles data packets by up to ``distance`` of their own places; packets without payload stay."""
    dice = random.Random(seed)
    places = [index for index, packet in enumerate(packets) if packet.payload]
    keyed = sorted((number + dice.random() * distance, index) for number, index in enumerate(places))
    out = list(packets)
    for place, (_, index) in zip(places, keyed, strict=True):
        out[place] = packets[index]
    return retimed(out)


def overlap(packets: Packets, extra: int) -> list[Packet]:
    """Every data packet but the first of a stream starts ``extra`` bytes early, with the same bytes."""
    streams: dict[tuple[int, bool], bytes] = {}
    out = []
    for packet in packets:
        key = (packet.connection, packet.from_client)
        before = streams.get(key, b"")
        if packet.payload:
            back = before[max(packet.offset - extra, 0) : packet.offset]
            streams[key] = before[: packet.offset] + packet.payload
            if back:
                packet = replace(  # noqa: PLW2901 the grown packet takes the place of the old one
                    packet,
                    payload=back + packet.payload,
                    offset=packet.offset - len(back),
                    seq=(packet.seq - len(back)) % MODULUS,
                )
        out.append(packet)
    return out


def start_late(packets: Packets, first: int) -> list[Packet]:
    """The capture began later: the first packets are not in it."""
    return list(packets[first:])


def one_direction(packets: Packets, *, from_client: bool) -> list[Packet]:
    """Only one side was captured."""
    return [packet for packet in packets if packet.from_client == from_client]


def corrupt(packets: Packets, index: int, at: int, mask: int = 0xFF) -> list[Packet]:
    """Flips bits of one payload byte."""
    out = list(packets)
    payload = bytearray(out[index].payload)
    payload[at] ^= mask
    out[index] = replace(out[index], payload=bytes(payload))
    return out
