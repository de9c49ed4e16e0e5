"""What a handshake tells of how far both sides are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.hand import ACK, START_NS, SYN, Talk, ask, connection_of, tables_of

MS = 1_000_000


def row_of(*, acknowledged: bool, pause: int) -> dict[str, Any]:
    """Beside a client 2 ms from its broker, which asks `pause` after the handshake; `acknowledged`: the
    capture has the handshake's last packet."""
    talk = Talk()
    talk.send(True, flags=SYN)
    talk.send(False, flags=SYN | ACK)
    times = [0, 2 * MS]
    if acknowledged:
        talk.send(True)
        times.append(2 * MS + 1_000)
    for number in range(2):
        ask(talk, number)
        begun = 2 * MS + pause + number * 30 * MS
        times += [begun, begun + 3 * MS]
    return connection_of(tables_of(talk.packets, times_ns=[START_NS + time for time in times]))


@pytest.mark.parametrize("pause", [1 * MS, 500 * MS])
def test_a_handshake_tells_the_round_trip(pause: int) -> None:
    row = row_of(acknowledged=True, pause=pause)
    assert (row["round_trip_ns"], row["capture_point"]) == (2 * MS + 1_000, "client")


@pytest.mark.parametrize("pause", [1 * MS, 500 * MS])
def test_a_request_in_place_of_its_last_acknowledgement_tells_none(pause: int) -> None:
    """When the client had something to say is no distance, and no place of a capture."""
    row = row_of(acknowledged=False, pause=pause)
    assert (row["round_trip_ns"], row["capture_point"]) == (None, "unknown")
