"""How soon a copy comes, and how many networks one pair of addresses has."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.pipeline.intrusions import intruded, places
from tests.pipeline.mirrored import ROOT, of_frames, recorded
from tests.pipeline.removal import numbered
from tests.pipeline.segments import conversations, frames_of, read
from tests.pipeline.test_networks import CAPTURE, in_vlan, merged, talk
from tests.traffic.files import Frame, read_frames

MILLI = 1_000_000
ISNS = [(1_000_000 + 200_000_000 * number, 3_000_000_000 - 150_000_000 * number) for number in range(18)]


@pytest.mark.parametrize(
    ("later_ms", "elsewhere", "is_copy"),
    [
        (4, False, True),
        (6, False, False),
        (6, True, True),
        (900, True, True),
        (1_100, True, False),
        (-4, False, True),  # clocks of two places may differ
        (-6, False, False),
        (-900, True, True),
        (-1_100, True, False),
    ],
)
def test_a_copy_comes_within_5_ms_or_from_elsewhere_within_a_second(
    later_ms: int, elsewhere: bool, is_copy: bool
) -> None:
    """Of a sender whose packets IP's identification tells apart. What comes later was sent again."""
    rows = list(recorded(CAPTURE))
    at = max(range(len(rows)), key=lambda number: len(rows[number].data))
    row = in_vlan(9)(rows[at]) if elsewhere else rows[at]
    again = Frame(row.time_ns + later_ms * MILLI, row.data, row.length)
    before = of_frames(rows)[0]["connections"]
    after = of_frames([*rows[: at + 1], again, *rows[at + 1 :]])[0]["connections"]

    def total(connections: list[dict[str, int]], what: str) -> int:
        return sum(
            connection[f"{side}_{what}"] for connection in connections for side in ("client", "broker")
        )

    assert sum(row["duplicate_packets"] for row in after) == is_copy
    sent_again = total(after, "retransmitted_bytes") - total(before, "retransmitted_bytes")
    assert (sent_again > 0) != is_copy


@pytest.mark.parametrize(("networks", "connections"), [(16, 16), (18, 16)])
def test_one_pair_of_addresses_and_ports_has_sixteen_networks_at_most(
    networks: int, connections: int
) -> None:
    talks = [
        [in_vlan(number + 1)(row) for row in talk(*isns, number * 10_000)]
        for number, isns in enumerate(ISNS[:networks])
    ]
    rows, _ = of_frames(merged(*talks))
    ended = [row for row in rows["connections"] if row["ending"] != "reused"]
    assert len(ended) == connections


def over_ipv6(row: Frame) -> Frame:
    """The frame with an IPv6 header, which has no identification, in place of IPv4's."""
    data = row.data
    header = (data[14] & 15) * 4
    segment = data[14 + header : 14 + int.from_bytes(data[16:18], "big")]
    prefix = b"\xfd" + bytes(11)
    packet = struct.pack(">IHBB", 6 << 28, len(segment), 6, data[22])
    packet += prefix + data[26:30] + prefix + data[30:34] + segment
    return Frame(row.time_ns, data[:12] + b"\x86\xdd" + packet, 54 + len(segment))


def told(rows: Iterable[Frame]) -> dict[str, list[str]]:
    """What the tables say beside places in the file and the number of copies."""
    places = ("connection_id", "duplicate_packets", "capture_point", "last_time")
    tables = of_frames(rows)[0]

    def text(row: dict[str, Any]) -> str:
        kept = {
            name: value
            for name, value in row.items()
            if name not in places and not name.endswith(("frame", "call_id", "behind"))
        }
        return repr(kept)

    return {name: sorted(map(text, rows)) for name, rows in tables.items()}


@pytest.mark.parametrize("later_ns", [1_000, 700_000, 2_000_000])
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("begun_late/capture.pcap", None),  # its first segments wait until it is known where streams begin
        ("clocks/far_40/client.pcap", None),  # SYN-ACKs have no identification
        ("clocks/loss_2/client.pcap", None),  # payload behind the end
        ("first_steps/capture.pcap", over_ipv6),
    ],
)
def test_every_packet_twice_changes_nothing(
    file: str, change: Callable[[Frame], Frame] | None, later_ns: int
) -> None:
    """The copies come behind later packets, from the same place."""
    rows = read_frames((ROOT / file).read_bytes())[1]
    rows = [change(row) for row in rows] if change else list(rows)
    copies = [Frame(row.time_ns + later_ns, row.data, row.length) for row in rows]
    twice = sorted([*rows, *copies], key=lambda row: row.time_ns)
    assert told(twice) == told(rows)


@pytest.mark.parametrize("later_ns", [1_000, 700_000])
def test_every_packet_twice_behind_a_reset_changes_nothing(later_ns: int) -> None:
    """What waits there until the reset is taken back is not counted as handed on."""
    _, segments = read(ROOT / "first_steps" / "capture.pcap")
    conversation = max(map(numbered, conversations(segments)), key=lambda each: len(places(each)))
    at = places(conversation)[2]
    rows = frames_of(intruded(conversation, at, "RST", of_first=False))
    copies = [Frame(row.time_ns + later_ns, row.data, row.length) for row in rows]
    twice = sorted([*rows, *copies], key=lambda row: row.time_ns)
    once = told(rows)
    assert "reset_taken_back" in "".join(once["anomalies"])
    assert told(twice) == once
