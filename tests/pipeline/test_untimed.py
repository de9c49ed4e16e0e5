"""Packets that a capture gives no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import decoded
from tests.pipeline.test_latency import talk
from tests.traffic import groups
from tests.traffic.files import frames, pcapng
from tests.traffic.tcp import MILLISECOND


@pytest.mark.parametrize("untimed", range(4))
def test_a_call_of_which_a_packet_has_no_time_has_no_latency(tmp_path: Path, untimed: int) -> None:
    """Simple packet blocks of pcapng have none; here it is one of the first call's: two that ask, two that
    answer."""
    scene, script = talk()
    for number in (1, 2):
        exchange = groups.heartbeat(0, number, "a-group-of-a-long-name")
        at = number * 10 * MILLISECOND
        script.write(exchange.request[:20], at, from_client=True)
        script.write(exchange.request[20:], at + MILLISECOND, from_client=True)
        assert exchange.response is not None
        script.write(exchange.response[:5], at + 2 * MILLISECOND, from_client=False)
        script.write(exchange.response[5:], at + 3 * MILLISECOND, from_client=False)
    rows = frames(scene.packets())
    carrying = [place for place, packet in enumerate(scene.packets()) if packet.payload]
    head = pcapng([])
    blocks = [pcapng([row], simple=place == carrying[untimed])[len(head) :] for place, row in enumerate(rows)]
    path = tmp_path / "capture.pcapng"
    path.write_bytes(head + b"".join(blocks))
    tables = decoded(path)
    assert {row["correlation_id"]: row["status"] for row in tables["api_calls"]} == {
        1: "answered",
        2: "answered",
    }
    first, second = sorted(tables["api_calls"], key=lambda row: row["correlation_id"])
    assert [row["call_id"] for row in tables["latencies"]] == [second["call_id"]]
    assert (first["latency_ns"] is None) == (untimed in (0, 3))


def test_nor_has_one_whose_answer_ends_in_such_a_packet_that_came_early(tmp_path: Path) -> None:
    """It is ready when the hole before it is filled: at a time that is known, unlike its own."""
    scene, script = talk()
    exchange = groups.heartbeat(0, 1, "g")
    assert exchange.response is not None
    script.write(exchange.request, MILLISECOND, from_client=True)
    script.write(exchange.response[:5], 2 * MILLISECOND, from_client=False)
    script.write(exchange.response[5:], 3 * MILLISECOND, from_client=False)
    *rows, first, last = frames(scene.packets())
    head = pcapng([])
    path = tmp_path / "capture.pcapng"
    path.write_bytes(pcapng(rows) + pcapng([last], simple=True)[len(head) :] + pcapng([first])[len(head) :])
    tables = decoded(path)
    assert [row["status"] for row in tables["api_calls"]] == ["answered"]
    assert tables["latencies"] == []
