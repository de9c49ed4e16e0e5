"""Writes large captures fast: one round of a scene is laid out once, then repeated with patched numbers.

round 0:  | pcap header | ... seq ack ... | payload ... correlation id ... | pcap header | ...
round r:  the same bytes, with  time + r*period,  seq + r*bytes of that side,  id + r*calls of that connection
          and  offset + r*growth from round 0 to round 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.traffic.files import frames, pcap
from tests.traffic.tcp import ACK, Packet, Scene

ETHERNET, IPV4, TCP_SEQ, TCP_ACK = 14, 20, 4, 8
BLOCK_BYTES = 32 << 20


@dataclass(slots=True)
class Patches:
    """32-bit numbers to rewrite: places of their four bytes, value in round 0 and growth per round."""

    places: list[list[int]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    step: list[int] = field(default_factory=list)

    def add(self, places: list[int], first: int, step: int) -> None:
        self.places.append(places)
        self.first.append(first)
        self.step.append(step)

    def apply(self, rounds: npt.NDArray[np.uint8], numbers: npt.NDArray[np.int64]) -> None:
        values = np.array(self.first, np.int64) + numbers[:, None] * np.array(self.step, np.int64)
        raw = (values & 0xFFFFFFFF).astype(">u4").view(np.uint8)
        rounds[:, np.array(self.places).ravel()] = raw


def acknowledged(packets: Sequence[Packet], every: int) -> list[Packet]:
    """Puts a bare ACK of the receiver behind every n-th data packet of a side."""
    out: list[Packet] = []
    waiting: dict[tuple[int, bool], int] = {}
    for packet in packets:
        out.append(packet)
        key = (packet.connection, packet.from_client)
        waiting[packet.connection, not packet.from_client] = 0
        waiting[key] = waiting.get(key, 0) + bool(packet.payload)
        if waiting[key] == every:
            waiting[key] = 0
            out.append(
                replace(
                    packet,
                    time_ns=packet.time_ns + 500,
                    source=packet.target,
                    target=packet.source,
                    seq=packet.ack,
                    ack=(packet.seq + len(packet.payload)) % 2**32,
                    flags=ACK,
                    payload=b"",
                    from_client=not packet.from_client,
                    offset=0,
                )
            )
    return out


def write(
    path: Path, scenes: tuple[Scene, Scene], *, megabytes: float, period_ns: int, every: int = 2
) -> int:
    """Writes about ``megabytes`` of rounds of a scene; gives the number of calls in the file.

    ``scenes``: the first round, and the one behind it with the same messages but for numbers that grow.
    """
    scene = scenes[0]
    packets = acknowledged(scene.packets(), every)
    start = min(index for index, packet in enumerate(packets) if packet.payload)
    opening, repeated = packets[:start], packets[start:]
    header_and_opening = pcap(frames(opening))
    template = pcap(frames(repeated))[24:]
    patches, clocks = _patches(scenes, repeated)
    count = max(int(megabytes * 1e6) // len(template), 1)
    per_block = max(BLOCK_BYTES // len(template), 1)
    base = np.frombuffer(template, np.uint8)
    with path.open("wb") as out:
        out.write(header_and_opening)
        for first in range(0, count, per_block):
            numbers = np.arange(first, min(first + per_block, count), dtype=np.int64)
            rounds = np.tile(base, (len(numbers), 1))
            patches.apply(rounds, numbers)
            _set_times(rounds, clocks, numbers * period_ns)
            out.write(rounds.data)
    return count * len(scene.calls)


def _grown(first: bytes, second: bytes) -> Iterator[tuple[int, int, int]]:
    """Numbers that differ: place of their last four bytes, value and growth."""
    differs = np.frombuffer(first, np.uint8) != np.frombuffer(second, np.uint8)
    for last in np.flatnonzero(differs & ~np.append(differs[1:], False)).tolist():
        value, later = (int.from_bytes(data[last - 3 : last + 1], "big") for data in (first, second))
        yield last - 3, value, later - value


def _patches(scenes: tuple[Scene, Scene], packets: Sequence[Packet]) -> tuple[Patches, npt.NDArray[np.int64]]:
    """What changes from round to round, and (place, time) of every pcap record header."""
    scene = scenes[0]
    lengths: dict[tuple[int, bool], int] = {}
    for packet in packets:
        key = (packet.connection, packet.from_client)
        lengths[key] = max(lengths.get(key, 0), packet.end)
    patches = Patches()
    where: dict[tuple[int, bool, int], int] = {}
    wanted: set[tuple[int, bool, int]] = set()
    fields: list[tuple[int, bool, int, int, int]] = []
    calls = {script.number: len(script.calls) for script in scene.scripts}
    for call, later in zip(scene.calls, scenes[1].calls, strict=True):
        growth = calls[call.connection]
        told = [(True, call.request.start, call.exchange.request, later.exchange.request, 8)]
        if call.response is not None:
            answers = call.exchange.response or b"", later.exchange.response or b""
            told.append((False, call.response.start, *answers, 4))
        for side, start, first, second, place in told:
            numbers = [(place, call.exchange.correlation_id, growth), *_grown(first, second)]
            for at, value, step in numbers:
                wanted.update((call.connection, side, start + at + index) for index in range(4))
                fields.append((call.connection, side, start + at, value, step))
    clocks = []
    at = 0
    for packet, frame in zip(packets, frames(packets), strict=True):
        clocks.append((at, packet.time_ns))
        tcp = at + 16 + ETHERNET + IPV4
        mine = lengths.get((packet.connection, packet.from_client), 0)
        other = lengths.get((packet.connection, not packet.from_client), 0)
        patches.add([tcp + TCP_SEQ + index for index in range(4)], packet.seq, mine)
        patches.add([tcp + TCP_ACK + index for index in range(4)], packet.ack, other)
        payload = at + 16 + frame.length - len(packet.payload) if packet.payload else 0
        for index in range(len(packet.payload)):
            key3 = (packet.connection, packet.from_client, packet.offset + index)
            if key3 in wanted:
                where[key3] = payload + index
        at += 16 + len(frame.data)
    for connection, side, stream_at, value, step in fields:
        patches.add([where[connection, side, stream_at + index] for index in range(4)], value, step)
    return patches, np.array(clocks, np.int64)


def _set_times(
    rounds: npt.NDArray[np.uint8], clocks: npt.NDArray[np.int64], later_ns: npt.NDArray[np.int64]
) -> None:
    times = clocks[:, 1] + later_ns[:, None]
    seconds, rest = np.divmod(times, 10**9)
    for shift, values in ((0, seconds), (4, rest // 1000)):
        raw = values.astype("<u4").view(np.uint8)
        rounds[:, (clocks[:, :1] + shift + np.arange(4)).ravel()] = raw
