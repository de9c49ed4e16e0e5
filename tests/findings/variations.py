"""Recordings changed as captures differ: cut in time, begun in the middle, faster, among others.

`python -m tests.findings.variations [NAME...]` prints of each whether its cause is still named. The evidence
may be gone with the packets: what is required then is silence, and no blame of anybody else.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.findings.measured import CAPTURES, FIRST, Judged, Recording, judge, recordings
from tests.house.tree import ROOT

SHARED = ROOT.parent / "shared" / "incidents"
GIVEN: Final = {
    "broker_pause": ("broker_stalled", "broker"),
    "connection_churn": ("connection_churn", "client"),
    "lag_grows": ("lag_grows", "client"),
    "metadata_storm": ("metadata_storm", "client"),
    "old_java_0.10.2.2_on_4.3": ("broker_hangs_up", "client"),
    "request_storm": ("request_storm", "client"),
    "slow_consumer": ("poll_interval_exceeded", "client"),
    "static_fenced": ("static_id_shared", "configuration"),
    "tls_to_plain": ("tls_on_plaintext", "client"),
    "txn_timeout": ("transaction_timed_out", "client"),
    "wrong_topic": ("unknown_topic", "client"),
    "healthy": ("", ""),
    "far_client_at_broker": ("far_away", "network"),
    "new_rdkafka_on_3.9": ("", ""),
    "old_java_1.1.1_on_3.9": ("", ""),
    "old_kp_2.6_on_3.9": ("", ""),
}
"""What the recordings beside the checkout show."""
_ETHERNET, _COOKED = 1, 113
_OTHERS: Final = {b"billing": b"invoice", b"shop": b"mart", b"orders": b"parcel"}
_LOST: Final = 0.2
_IPV4: Final = b"\x08\x00"


@dataclass(frozen=True, slots=True)
class Packet:
    """`ticks`: its time in parts of a second, as the file counts them."""

    ticks: int
    length: int
    data: bytes

    def addresses(self, link: int) -> tuple[bytes, bytes] | None:
        """Source and target of IPv4."""
        at = _network(link)
        if self.data[at - 2 : at] != _IPV4 or len(self.data) < at + 20:
            return None
        return self.data[at + 12 : at + 16], self.data[at + 16 : at + 20]


@dataclass(frozen=True, slots=True)
class Pcap:
    """A file of packets, little-endian."""

    header: bytes
    packets: Sequence[Packet]

    @property
    def link(self) -> int:
        return int.from_bytes(self.header[20:24], "little")

    @property
    def second(self) -> int:
        """Ticks of a second."""
        return 10**9 if self.header[:4] == bytes.fromhex("4d3cb2a1") else 10**6

    @classmethod
    def read(cls, path: Path) -> Pcap:
        data = path.read_bytes()
        empty = cls(data[:24], ())
        found, at = [], 24
        while at + 16 <= len(data):
            seconds, rest, size, length = struct.unpack_from("<IIII", data, at)
            found.append(Packet(seconds * empty.second + rest, length, data[at + 16 : at + 16 + size]))
            at += 16 + size
        return cls(empty.header, found)

    def write(self, path: Path) -> Path:
        parts = [self.header]
        for packet in self.packets:
            seconds, rest = divmod(packet.ticks, self.second)
            parts += [struct.pack("<IIII", seconds, rest, len(packet.data), packet.length), packet.data]
        path.write_bytes(b"".join(parts))
        return path

    def of(self, packets: Sequence[Packet]) -> Pcap:
        return Pcap(self.header, packets)


def _network(link: int) -> int:
    return {_ETHERNET: 14, _COOKED: 16}.get(link, 20)  # else cooked, version 2


def first_half(capture: Pcap) -> Pcap:
    """What came before the middle of its time."""
    middle = (capture.packets[0].ticks + capture.packets[-1].ticks) // 2
    return capture.of([packet for packet in capture.packets if packet.ticks < middle])


def second_half(capture: Pcap) -> Pcap:
    """What came after it."""
    middle = (capture.packets[0].ticks + capture.packets[-1].ticks) // 2
    return capture.of([packet for packet in capture.packets if packet.ticks >= middle])


def begun_late(capture: Pcap) -> Pcap:
    """Without the first 30 % of the packets."""
    return capture.of(capture.packets[len(capture.packets) * 3 // 10 :])


def ended_early(capture: Pcap) -> Pcap:
    """Without the last 20 % of the packets."""
    return capture.of(capture.packets[: len(capture.packets) * 8 // 10])


def middle(capture: Pcap) -> Pcap:
    """Without the first and the last quarter of its time."""
    begin, end = capture.packets[0].ticks, capture.packets[-1].ticks
    quarter = (end - begin) // 4
    return capture.of([each for each in capture.packets if begin + quarter <= each.ticks < end - quarter])


def dropped(capture: Pcap) -> Pcap:
    """Without one packet in five, which the capture lost: those of its connections all got there."""
    chance = random.Random(len(capture.packets))
    return capture.of([each for each in capture.packets if chance.random() >= _LOST])


def faster(capture: Pcap) -> Pcap:
    """A third faster; slower is none, since waits would last longer than requests and answers say."""
    begin = capture.packets[0].ticks
    return capture.of(
        [Packet(begin + (each.ticks - begin) * 3 // 4, each.length, each.data) for each in capture.packets]
    )


def among_others(capture: Pcap) -> Pcap:
    """With a healthy cluster and its clients beside it, which have addresses of their own."""
    other = Pcap.read(CAPTURES / "incidents" / "healthy_bursts" / "broker.pcap")
    if (other.link, other.second) != (capture.link, capture.second):
        return capture
    ahead = capture.packets[0].ticks - other.packets[0].ticks
    at = _network(other.link)
    moved = []
    for packet in other.packets:
        data = bytearray(packet.data)
        if packet.addresses(other.link):
            data[at + 13] = data[at + 17] = 99  # 10.99.x.x
        renamed = bytes(data)
        for name, other_name in _OTHERS.items():
            renamed = renamed.replace(name, other_name)
        moved.append(Packet(packet.ticks + ahead, packet.length, renamed))
    return capture.of(sorted([*capture.packets, *moved], key=lambda each: each.ticks))


VARIATIONS: Final[dict[str, Callable[[Pcap], Pcap]]] = {
    change.__name__: change
    for change in (
        first_half,
        second_half,
        middle,
        begun_late,
        ended_early,
        dropped,
        faster,
        among_others,
    )
}


def given() -> Iterator[Recording]:
    """The recordings beside the checkout."""
    for name, (cause, blames) in GIVEN.items():
        path = SHARED / f"{name}.pcap"
        if path.is_file():
            yield Recording(name, "shared", path, "", cause, blames)


def vary(recording: Recording, change: Callable[[Pcap], Pcap], folder: Path) -> Judged | None:
    """What is said of a recording when it is changed so; None where nothing is left."""
    changed = change(Pcap.read(recording.path))
    if len(changed.packets) < 2:
        return None
    path = changed.write(folder / "changed.pcap")
    return judge(Recording(recording.name, recording.place, path, "", recording.cause, recording.blames))


def run(names: Sequence[str]) -> None:
    """Prints a line for each that is not as it should be, and shares by variation."""
    chosen = [each for each in (*recordings(), *given()) if not names or each.name in names]
    right: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for each in chosen:
            for name, change in VARIATIONS.items():
                judged = vary(each, change, Path(folder))
                if judged is None:
                    continue
                rest = tuple(other for other in judged.others if other != "capture_incomplete")
                is_right = judged.is_right if each.cause else not rest
                right.setdefault(f"{name} {'cause' if each.cause else 'healthy'}", []).append(is_right)
                if not is_right or rest:
                    rank = "" if not each.cause else f"{each.cause} {judged.rank or 'not found'}"
                    _say(f"{each.name} {each.place} {name}: {rank} {', '.join(rest)}")
    for name, found in right.items():
        _say(f"{name}: {sum(found)} of {len(found)} (first {FIRST})")


def _say(line: str) -> None:
    sys.stdout.write(f"{line.rstrip()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1:])
