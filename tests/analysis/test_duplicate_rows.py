"""What twins change in rows that are there already."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kwsniff.analysis.duplicate_rows import move_repeated, twins_anomalies
from kwsniff.timelines.duplicates.duplicate_connections import Twin, Twins


def captures(**retransmitted: int) -> list[Any]:
    return [
        {"capture": name, "retransmitted_bytes": number, "captured_twice_bytes": 7}
        for name, number in retransmitted.items()
    ]


def test_what_twins_show_sent_again_moves_to_the_copies() -> None:
    rows = captures(client=100, broker=100, other=50)
    move_repeated(rows, Twins(repeated=Counter({"client": 60, "broker": 300})))
    assert [(row["retransmitted_bytes"], row["captured_twice_bytes"]) for row in rows] == [
        (40, 67),
        (0, 107),  # not below nothing
        (50, 7),
    ]


def test_connections_that_were_not_compared_are_an_anomaly() -> None:
    assert twins_anomalies(Twins(found={2: Twin(1, None)})) == []
    (row,) = twins_anomalies(Twins(left_out=12))
    assert (row["name"], row["value"]) == ("twins_limit", 12)
