"""Answers that were lost before the capture with nothing behind them, and came again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.hand import (
    ACK,
    BROKER,
    CLIENT,
    START_NS,
    SYN,
    ipv4,
    request,
    response,
    tables_of,
    tcp,
)

MS = 1_000_000
WAY = 20 * MS  # there and back, seen beside the client


def row_of(
    *,
    numbers: tuple[int, ...] = (0, 7_306, 7_308),
    answered: int = 20 + 220 + 1,
    payload: bytes = b"",
    acknowledged: int | None = None,
) -> dict[str, Any]:
    """One call: `numbers` are IP's of the SYN-ACK, the acknowledgement and the answer, which came `answered`
    milliseconds behind the request; `payload` comes with the acknowledgement."""
    ask, answer = request(1), response(1)
    ports = CLIENT[1], BROKER[1]
    back = ports[::-1]
    source, target = BROKER[0], CLIENT[0]
    there = 1_001 + len(payload)

    def from_broker(segment: bytes, number: int) -> bytes:
        return ipv4(segment, source=source, target=target, ident=number)

    has = 101 + len(ask) if acknowledged is None else acknowledged
    packets = [
        (0, ipv4(tcp(seq=100, flags=SYN, ports=ports), ident=40)),
        (WAY, from_broker(tcp(seq=1_000, ack=101, flags=SYN | ACK, ports=back), numbers[0])),
        (WAY, ipv4(tcp(seq=101, ack=1_001, ports=ports), ident=41)),
        (WAY, ipv4(tcp(ask, 101, 1_001, ports=ports), ident=42)),
        (2 * WAY, from_broker(tcp(payload, 1_001, has, ports=back), numbers[1])),
        (2 * WAY, ipv4(tcp(seq=101 + len(ask), ack=there, ports=ports), ident=43)),
        (
            WAY + answered * MS,
            from_broker(tcp(answer[len(payload) :], there, 101 + len(ask), ports=back), numbers[2]),
        ),
    ]
    tables = tables_of(
        [packet for _, packet in packets], times_ns=[START_NS + time for time, _ in packets], ports=[9092]
    )
    (row,) = tables["latencies"]
    assert row["total_ns"] == row["network_ns"] + row["broker_ns"] + row["response_transmission_ns"]
    return row


def test_the_timeout_of_an_answer_that_was_sent_before_is_the_networks() -> None:
    """The broker took 1 ms; its answer came a round trip and 200 ms later again."""
    row = row_of()
    assert (row["network_ns"], row["broker_ns"]) == (240 * MS, 1 * MS)


def test_the_second_timeout_is_twice_as_long() -> None:
    row = row_of(numbers=(0, 7_306, 7_309), answered=20 + 660 + 5)
    assert (row["network_ns"], row["broker_ns"]) == (680 * MS, 5 * MS)


def test_numbers_begin_again_behind_the_last() -> None:
    assert row_of(numbers=(0, 65_535, 1))["broker_ns"] == 1 * MS


def test_what_a_timeout_does_not_explain_is_the_brokers() -> None:
    assert row_of(answered=20 + 220 + 500)["broker_ns"] == 500 * MS


@pytest.mark.parametrize(
    "changed",
    [
        {"numbers": (0, 7_306, 7_307)},
        {"numbers": (0, 7_306, 7_300)},
        {"numbers": (0, 7_306, 7_310)},
        {"numbers": (7_305, 7_306, 7_308)},
        {"numbers": (0, 0, 2)},
        {"answered": 20 + 199},
        {"acknowledged": 101},
    ],
    ids=[
        "none is missing", "backwards", "too many", "another system", "no numbers", "too soon",
        "it may have been the acknowledgement",
    ],
)  # fmt: skip
def test_without_proof_the_broker_took_as_long_as_it_seems(changed: dict[str, Any]) -> None:
    answered = changed.get("answered", 241)
    row = row_of(**changed)
    assert (row["network_ns"], row["broker_ns"]) == (WAY, answered * MS - WAY)


def test_the_number_of_a_packet_with_payload_tells_nothing() -> None:
    """Cards join packets: the next number is not the one behind its first."""
    row = row_of(payload=response(1)[:4])
    assert row["network_ns"] == WAY
