"""How soon a copy comes, and how many networks one pair of addresses has."""

from __future__ import annotations

import pytest

from tests.pipeline.mirrored import of_frames, recorded
from tests.pipeline.test_networks import CAPTURE, in_vlan, merged, talk
from tests.traffic.files import Frame

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
    ended = [row for row in rows["connections"] if row["end"] != "reused"]
    assert len(ended) == connections
