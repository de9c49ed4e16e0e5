"""What servers do that are not today's Apache Kafka, and what breaks the protocol: read and noted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.core.hand import ACK, FIN, START_NS, Rows, Talk, ask, connection_of, request, response, tables_of
from tests.traffic.files import Frame, pcap
from tests.traffic.wire import sized

KERBEROS = bytes.fromhex("06092a864886f712010202")
SPNEGO = bytes.fromhex("06062b0601050502")


def produce(number: int, acks: int, version: int = 3) -> bytes:
    """Produce v3, without a topic (ProduceRequest.json)."""
    head = struct.pack(">hhih", 0, version, number, 1) + b"p"
    return sized(head + struct.pack(">hhii", -1, acks, 30_000, 0))


def produced(number: int) -> bytes:
    """Its response: no topics, no throttling."""
    return sized(struct.pack(">iii", number, 0, 0))


def told(tables: Rows) -> list[tuple[Any, ...]]:
    return [(row["correlation_id"], row["status"]) for row in by_frame(tables)]


def by_frame(tables: Rows) -> list[dict[str, Any]]:
    return sorted(tables["api_calls"], key=lambda row: (row["request_frame"] or 0, row["correlation_id"]))


def anomalies(tables: Rows) -> list[tuple[str, int]]:
    return [(row["name"], row["value"]) for row in tables["anomalies"]]


# -- answers to Produce with acks=0 (Azure Event Hubs) -----------------------------------------------------


def test_answers_to_acks_0_are_paired_from_the_first_one_on() -> None:
    talk = Talk().open()
    ask(talk, 1)
    for number in range(2, 8):
        talk.send(True, produce(number, 0))
        talk.send(False, produced(number))
    tables = tables_of(talk.packets)
    assert told(tables) == [
        (1, "answered"),
        (2, "no_response_expected"),
        *((n, "answered") for n in range(3, 8)),
    ]
    assert anomalies(tables) == []


def test_answers_to_acks_0_may_come_behind_several_requests() -> None:
    talk = Talk().open()
    talk.send(True, b"".join(produce(number, 0) for number in range(-2, 6)))
    for number in range(-2, 6):
        talk.send(False, produced(number))
    ask(talk, 6)
    tables = tables_of(talk.packets)
    assert told(tables) == [*((n, "no_response_expected") for n in range(-2, 6)), (6, "answered")]
    assert anomalies(tables) == []


def test_where_acks_0_is_answered_at_times_only_nothing_is_called_unanswered() -> None:
    talk = Talk().open()
    talk.send(True, produce(1, 0))
    talk.send(False, produced(1))
    talk.send(True, produce(2, 0))
    talk.send(True, produce(3, 0))
    talk.send(False, produced(3))
    talk.send(True, produce(4, 0))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    tables = tables_of(talk.packets)
    without, answered = "no_response_expected", "answered"
    assert told(tables) == [(1, without), (2, without), (3, answered), (4, without)]
    assert anomalies(tables) == []


def test_another_number_than_those_of_acks_0_is_still_unexpected() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, produce(2, 0))
    talk.send(True, produce(3, 0))
    talk.send(False, response(4))
    tables = tables_of(talk.packets)
    assert anomalies(tables) == [("unexpected_response", 4)]


# -- FindCoordinator of Kafka 0.8.2 ------------------------------------------------------------------------


def find_coordinator(number: int) -> bytes:
    return sized(struct.pack(">hhih", 10, 0, number, 1) + b"c" + struct.pack(">h", 1) + b"g")


def found(number: int) -> bytes:
    """No error, node 1 at h:9092."""
    return sized(struct.pack(">ihih", number, 0, 1, 1) + b"h" + struct.pack(">i", 9092))


def analyzed(packets: list[bytes], folder: Path) -> Rows:
    """With what layouts say of APIs besides their versions."""
    path = folder / "capture.pcap"
    path.write_bytes(
        pcap([Frame(START_NS + n * 10**6, each, len(each)) for n, each in enumerate(packets)], 101)
    )
    found = kwsniff.analyze(path)
    return {name: getattr(found, name).to_pylist() for name in ("api_calls", "anomalies")}


def test_find_coordinator_answered_with_number_0(tmp_path: Path) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, find_coordinator(2))
    talk.send(False, found(0))
    ask(talk, 3)
    tables = analyzed(talk.packets, tmp_path)
    assert told(tables) == [(1, "answered"), (2, "answered"), (3, "answered")]
    assert anomalies(tables) == []


def test_number_0_answers_nothing_else(tmp_path: Path) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False, response(0))
    talk.send(True, find_coordinator(3))
    talk.send(False, response(0))  # does not decode as its answer
    tables = analyzed(talk.packets, tmp_path)
    assert anomalies(tables) == [("unexpected_response", 0)] * 2


# -- null bytes --------------------------------------------------------------------------------------------


def sync_group(number: int) -> bytes:
    """SyncGroup v0 (SyncGroupRequest.json): group g, generation 1, member m, no assignments."""
    text = struct.pack(">h", 1)
    body = text + b"g" + struct.pack(">i", 1) + text + b"m" + struct.pack(">i", 0)
    return sized(struct.pack(">hhih", 14, 0, number, 1) + b"c" + body)


def test_null_bytes_where_none_may_be_are_read_and_noted() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, sync_group(2))
    talk.send(False, sized(struct.pack(">ihi", 2, 27, -1)))  # REBALANCE_IN_PROGRESS, assignment null
    ask(talk, 3)
    tables = tables_of(talk.packets)
    assert told(tables) == [(1, "answered"), (2, "answered"), (3, "answered")]
    assert anomalies(tables) == [("null_not_allowed", 10)]  # behind size, number and error
    assert [(row["reason"], row["error_code"]) for row in by_frame(tables)][1] == (None, 27)


def test_bytes_of_another_negative_length_are_read_no_further() -> None:
    talk = Talk().open()
    talk.send(True, sync_group(2))
    talk.send(False, sized(struct.pack(">ihi", 2, 27, -2)))
    tables = tables_of(talk.packets)
    assert [name for name, _ in anomalies(tables)] == ["undecodable_response"]


def test_null_text_where_none_may_be_is_read_no_further() -> None:
    talk = Talk().open()
    talk.send(True, find_coordinator(2))
    talk.send(False, sized(struct.pack(">ihihi", 2, 0, 1, -1, 9092)))
    tables = tables_of(talk.packets)
    assert [name for name, _ in anomalies(tables)] == ["undecodable_response"]


# -- aborted transactions ----------------------------------------------------------------------------------


def fetch(number: int) -> bytes:
    """Fetch v4 of nothing (FetchRequest.json)."""
    return sized(struct.pack(">hhih", 1, 4, number, 1) + b"c" + struct.pack(">iiiibi", -1, 500, 1, 1, 1, 0))


def fetched(number: int, *partitions: list[int]) -> bytes:
    """Its response: partitions of t, with the first offsets of aborted transactions of producer 9."""
    body = struct.pack(">iiih", number, 0, 1, 1) + b"t" + struct.pack(">i", len(partitions))
    for at, offsets in enumerate(partitions):
        body += struct.pack(">ihqqi", at, 0, 50, 50, len(offsets))
        body += b"".join(struct.pack(">qq", 9, each) for each in offsets) + struct.pack(">i", 0)
    return sized(body)


@pytest.mark.parametrize(
    ("partitions", "found"),
    [
        ([[5, 9, 9]], []),
        ([[7, 9], [5, 6], []], []),  # each partition has an order of its own
        ([[7, 9], [6, 5, 4]], [5]),  # the first that is out of order
        ([[9, 0]], [0]),
    ],
)
def test_aborted_transactions_out_of_order_are_noted(partitions: list[list[int]], found: list[int]) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, fetch(2))
    talk.send(False, fetched(2, *partitions))
    tables = tables_of(talk.packets)
    assert told(tables) == [(1, "answered"), (2, "answered")]
    assert anomalies(tables) == [("aborted_out_of_order", each) for each in found]


# -- order and numbers -------------------------------------------------------------------------------------


def test_answers_in_another_order_are_paired_and_noted() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2) + request(3) + request(4))
    talk.send(False, response(2) + response(4) + response(3))
    tables = tables_of(talk.packets)
    assert told(tables) == [(number, "answered") for number in (1, 2, 3, 4)]
    assert anomalies(tables) == [("answered_out_of_order", 3)]


def test_segments_in_another_order_are_no_answers_in_another_order() -> None:
    talk = Talk().open()
    talk.send(True, request(1) + request(2) + request(3))
    late = talk.send(False, response(1), keep=False)
    talk.send(False, response(2))
    talk.packets.append(late)
    talk.send(False, response(3))
    assert anomalies(tables_of(talk.packets)) == []


# -- GSS-API tokens without SaslHandshake (Kafka 0.9) ------------------------------------------------------


def token(mechanism: bytes, size: int, *, off: int = 0) -> bytes:
    """RFC 2743 3.1: 60, length, mechanism, what is the mechanism's; `off`: how far the length is off."""
    inner = mechanism + b"\1\0" * (size // 2)
    number = len(inner) + off
    length = bytes([number]) if number < 128 else b"\x82" + struct.pack(">H", number)
    return sized(b"\x60" + length + inner)


@pytest.mark.parametrize(
    "mechanism", [KERBEROS, SPNEGO, bytes.fromhex("06032b0e02")], ids=["krb5", "spnego", "other"]
)
@pytest.mark.parametrize("size", [20, 600])
def test_bare_tokens_of_gssapi_begin_a_kafka_connection(mechanism: bytes, size: int) -> None:
    talk = Talk().open()
    talk.send(True, token(mechanism, size))
    talk.send(False, sized(b""))
    talk.send(True, sized(b""))
    talk.send(False, sized(b"\5\4" + bytes(30)))
    talk.send(True, sized(b"\5\4" + bytes(30)))
    for number in range(1, 5):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert told(tables) == [(number, "answered") for number in range(1, 5)]
    assert (connection_of(tables)["protocol"], anomalies(tables)) == ("kafka", [])


def test_a_token_of_kerberos_is_one_though_its_length_does_not_agree() -> None:
    talk = Talk().open()
    talk.send(True, token(KERBEROS, 600, off=4))
    talk.send(False, sized(b""))
    ask(talk, 1)
    assert told(tables_of(talk.packets)) == [(1, "answered")]


def test_bytes_that_only_begin_like_a_token_are_none() -> None:
    talk = Talk().open()
    talk.send(True, token(bytes.fromhex("06032b0e02"), 600, off=4))
    talk.send(False, sized(b""))
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert (tables["api_calls"], connection_of(tables)["protocol"]) == ([], "other")
