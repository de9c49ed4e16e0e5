"""Segments that end a connection, and those that only seem to (RFC 9293 3.10.7, RFC 5961)."""

from __future__ import annotations

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    RST,
    START_NS,
    SYN,
    Talk,
    ask,
    assert_answered,
    connection_of,
    ipv4,
    names,
    request,
    response,
    tables_of,
    tcp,
)
from tests.pipeline.running import analyzer
from tests.traffic.files import Frame, pcap

SECOND = 10**9


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize(
    ("ahead", "name"),
    [
        (1_000, "reset_taken_back"),
        (70_000, "reset_out_of_window"),
        (2**30, "reset_out_of_window"),
        (-5_000, "reset_out_of_window"),
    ],
)
def test_a_reset_that_nobody_takes_ends_nothing(ahead: int, name: str, from_client: bool) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, flags=RST, seq=talk.next[from_client] + ahead)
    ask(talk, 2)
    ask(talk, 3)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3)
    (row,) = (row for row in tables["anomalies"] if row["name"] == name)
    assert (row["value"], names(tables)) == (ahead, [name])
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["client_missing_bytes"], row["broker_missing_bytes"]) == (
        "open", None, 0, 0,
    )  # fmt: skip


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("flags", [RST, RST | ACK])
@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_a_reset_with_the_expected_number_that_nobody_took(
    waiting: int, flags: int, from_client: bool
) -> None:
    """Calls may wait for their answers when it comes, and others are asked behind it."""
    talk = Talk().open()
    ask(talk, 1)
    for number in range(2, 2 + waiting):
        talk.send(True, request(number))
    talk.send(from_client, flags=flags)
    for number in range(2, 2 + waiting):
        talk.send(False, response(number))
    for number in range(5, 8):
        ask(talk, number)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, *range(2, 2 + waiting), 5, 6, 7)
    (row,) = (row for row in tables["anomalies"] if row["name"] == "reset_taken_back")
    assert (row["value"], names(tables)) == (0, ["reset_taken_back"])
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["client_missing_bytes"], row["broker_missing_bytes"]) == (
        "open", None, 0, 0,
    )  # fmt: skip


def test_what_is_asked_behind_a_reset_is_for_nobody() -> None:
    """Requests under way when the broker reset the connection are not calls that it left unanswered."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False, flags=RST)
    talk.send(True, request(3))
    talk.send(True, request(4))
    tables = tables_of(talk.packets)
    assert [(row["correlation_id"], row["status"]) for row in tables["api_calls"]] == [
        (1, "answered"),
        (2, "unanswered"),
    ]
    assert names(tables) == ["data_after_end", "data_after_end"]
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["client_bytes"], row["client_missing_bytes"]) == (
        "reset", "broker", len(request(1)) + len(request(2)), 0,
    )  # fmt: skip


def test_what_mends_a_hole_before_a_reset_hands_on_nothing_behind_it() -> None:
    talk = Talk().open()
    ask(talk, 1)
    late = talk.send(True, request(2)[:9], keep=False)
    talk.send(True, request(2)[9:])
    talk.send(False, flags=RST)
    talk.send(True, request(3))
    talk.packets.append(late)
    tables = tables_of(talk.packets)
    assert [(row["correlation_id"], row["status"]) for row in tables["api_calls"]] == [
        (1, "answered"),
        (2, "unanswered"),
    ]
    assert names(tables) == ["data_after_end"]
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_missing_bytes"]) == (len(request(1)) + len(request(2)), 0)


def test_an_acknowledgement_of_what_came_behind_a_reset_takes_it_back() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, flags=RST)
    talk.send(True, request(2))
    talk.send(False)
    tables = tables_of(talk.packets)
    assert [(row["correlation_id"], row["status"]) for row in tables["api_calls"]] == [
        (1, "answered"),
        (2, "unanswered"),
    ]
    assert (connection_of(tables)["ending"], names(tables)) == ("open", ["reset_taken_back"])


def test_what_is_sent_again_behind_a_reset_keeps_the_time_of_its_first_copy() -> None:
    """One segment repeats what came before the reset, and what came behind it."""
    talk = Talk().open()
    ask(talk, 1)
    at = talk.next[True]
    talk.send(True, request(2))
    talk.send(False, flags=RST)
    talk.send(True, request(3))
    talk.send(True, request(2) + request(3), seq=at)
    talk.next[True] = at + len(request(2) + request(3))
    talk.send(False, response(2))
    talk.send(False, response(3))
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3)
    times = {row["correlation_id"]: row["request_frame"] for row in tables["api_calls"]}
    assert times == {1: 4, 2: 6, 3: 8}
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_retransmitted_bytes"]) == (
        3 * len(request(1)),
        2 * len(request(1)),
    )


@pytest.mark.parametrize("from_client", [True, False])
def test_nobody_owes_an_answer_behind_a_reset(from_client: bool) -> None:
    """Who is gone will not answer, and is not asked for it; whoever goes on owes what it owed."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    owed = [_owed(talk.packets)]
    talk.send(from_client, flags=RST)
    owed.append(_owed(talk.packets))
    talk.send(True, request(3))
    talk.send(False)
    talk.send(False, response(2))
    talk.send(True)
    owed.append(_owed(talk.packets))
    assert owed == [1, 0, 1]


def _owed(packets: list[bytes]) -> int:
    """Calls that wait for their answers while the capture goes on."""
    engine = analyzer()
    engine.open_capture("capture")
    engine.feed(pcap([Frame(START_NS + number, data, len(data)) for number, data in enumerate(packets)], 101))
    return len(engine.waits(2**62, frozenset(), 100))


def test_who_closes_behind_a_reset_that_nobody_took() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, flags=RST)
    talk.send(True, request(2))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, response(2))
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["close_frame"]) == ("fin", "client", 8)


@pytest.mark.parametrize("more", [b"", response(3)])
def test_an_acknowledgement_behind_a_reset_proves_what_the_client_had_sent_before_it_closed(
    more: bytes,
) -> None:
    """The capture missed a request; its client closed, then reset what came; the broker had the request."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2), keep=False)
    at = talk.next[True]
    talk.send(True, flags=FIN | ACK)
    talk.send(False, ack=at - len(request(2)))
    talk.send(True, flags=RST)
    talk.send(False, ack=at)
    talk.send(False, response(2), ack=at)
    talk.send(False, more)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    holes = [(r["name"], r["direction"], r["value"]) for r in tables["anomalies"] if "segment" in r["name"]]
    assert holes == [("segment_not_captured", "client", len(request(2)))]
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["client_missing_bytes"], row["broker_missing_bytes"]) == (
        "reset", "client", len(request(2)), 0,
    )  # fmt: skip


def test_a_reset_that_is_gainsaid_too_late() -> None:
    """What goes on behind it is a connection of its own; a call is lost, and none is blamed on the broker."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, flags=RST)
    before = len(talk.packets)
    for number in (2, 3, 4, 5):
        ask(talk, number)
    talk.send(True)
    times = [
        START_NS + number * 1_000_000 + (11 * SECOND if number >= before else 0)
        for number in range(len(talk.packets))
    ]
    tables = tables_of(talk.packets, times_ns=times)
    assert [row["ending"] for row in tables["connections"]] == ["reset", "open"]
    assert "reset_taken_back" in names(tables)
    assert "unanswered" not in {row["status"] for row in tables["api_calls"]}
    answered = [row["correlation_id"] for row in tables["api_calls"] if row["status"] == "answered"]
    assert answered == [1, 3, 4, 5]


def test_a_reset_behind_lost_segments_ends_the_connection() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False, response(2), keep=False)
    talk.send(False, flags=RST)
    later = [START_NS + number * 1_000_000 for number in range(len(talk.packets))]
    tables = tables_of([*talk.packets, talk.packets[0]], times_ns=[*later, later[-1] + 11 * SECOND])
    assert connection_of(tables)["ending"] == "reset"
    assert connection_of(tables)["closed_by"] == "broker"


@pytest.mark.parametrize("flags", [SYN, SYN | ACK])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_stray_handshake_means_nothing(flags: int, from_client: bool) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, flags=flags, seq=77)
    ask(talk, 2)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert (connection_of(tables)["ending"], names(tables)) == ("open", ["handshake_out_of_place"])


def test_a_refused_connection() -> None:
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    talk.send(True, flags=SYN, seq=70_000)
    talk.send(False, flags=RST | ACK)
    row = connection_of(tables_of(talk.packets, times_ns=[START_NS + number * SECOND for number in range(3)]))
    assert (row["refused"], row["syn_retries"], row["closed_by"], row["close_frame"]) == (
        True,
        1,
        "broker",
        3,
    )


@pytest.mark.parametrize("length", [0, 30])
def test_who_acknowledged_something_was_not_refused(length: int) -> None:
    """The SYN of the broker is not in the capture; who answers it has it (RFC 9293 3.10.7.3)."""
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    talk.send(True, b"x" * length)
    talk.send(False, flags=RST | ACK, seq=1)
    row = connection_of(tables_of(talk.packets))
    assert (row["refused"], row["ending"], row["closed_by"]) == (False, "reset", "broker")


def test_a_reset_that_does_not_acknowledge_the_syn() -> None:
    """RFC 9293 3.10.7.3: anybody can send one."""
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    packet = tcp(b"", 0, 70_000, RST | ACK, ports=(9092, 50_000))
    talk.packets.append(ipv4(packet, source="10.0.0.2", target="10.0.0.1"))
    talk.send(False, flags=SYN | ACK)
    talk.send(True)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    assert (connection_of(tables)["refused"], names(tables)) == (False, ["reset_out_of_window"])


@pytest.mark.parametrize("from_client", [True, False])
def test_who_closes(from_client: bool) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, flags=FIN | ACK)
    talk.send(not from_client, flags=FIN | ACK)
    talk.send(from_client)
    row = connection_of(tables_of(talk.packets))
    assert (row["ending"], row["closed_by"], row["close_frame"], row["syn_retries"], row["refused"]) == (
        "fin", "client" if from_client else "broker", 6, 0, False,
    )  # fmt: skip


def test_nobody_closes() -> None:
    talk = Talk().open()
    ask(talk, 1)
    row = connection_of(tables_of(talk.packets))
    assert (row["closed_by"], row["close_frame"]) == (None, None)


def test_a_fin_needs_no_room() -> None:
    talk = Talk().open()
    ask(talk, 1)
    for side in (True, False):
        number, ack = talk.next[side], talk.next[not side]
        ports, ends = (
            ((50_000, 9092), ("10.0.0.1", "10.0.0.2")) if side else ((9092, 50_000), ("10.0.0.2", "10.0.0.1"))
        )
        packet = bytearray(tcp(b"", number, ack, FIN | ACK, ports=ports))
        packet[14:16] = b"\0\0"
        talk.packets.append(ipv4(bytes(packet), source=ends[0], target=ends[1]))
        talk.next[side] += 1
    talk.send(True)
    row = connection_of(tables_of(talk.packets))
    assert (row["client_zero_window_ns"], row["broker_zero_window_ns"]) == (0, 0)


@pytest.mark.parametrize("from_client", [True, False])
def test_a_capture_that_begins_out_of_order(from_client: bool) -> None:
    """The first segment of a direction is recorded behind the second one."""
    talk = Talk(1, 1)
    if from_client:
        first = talk.send(True, request(1)[:9], keep=False)
        second = talk.send(True, request(1)[9:], keep=False)
        talk.packets += [second, first]
        talk.send(False, response(1))
    else:
        talk.send(True, request(1))
        first = talk.send(False, response(1)[:9], keep=False)
        second = talk.send(False, response(1)[9:], keep=False)
        talk.packets += [second, first]
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert names(tables) == []
    row = connection_of(tables)
    assert (row["client_bytes"], row["broker_bytes"]) == (2 * len(request(1)), 2 * len(response(1)))


@pytest.mark.parametrize("order", [(2, 1), (3, 2, 1), (2, 3, 1), (3, 1, 2)])
def test_answers_in_swapped_order_are_paired(order: tuple[int, ...]) -> None:
    talk = Talk().open()
    for number in sorted(order):
        talk.send(True, request(number))
    for number in order:
        talk.send(False, response(number))
    tables = tables_of(talk.packets)
    assert_answered(tables, *sorted(order))
    late = [number for place, number in enumerate(order) if number < max(order[: place + 1])]
    assert names(tables) == ["answered_out_of_order"] * len(late)


def test_a_call_that_is_passed_over_is_said_to_be() -> None:
    talk = Talk().open()
    talk.send(True, request(1))
    for number in range(2, 30):
        ask(talk, number)
    tables = tables_of(talk.packets)
    (row,) = (row for row in tables["api_calls"] if row["status"] != "answered")
    assert (row["correlation_id"], row["status"], row["reason"]) == (1, "unanswered", "passed_over")
    assert names(tables) == ["passed_over"]


@pytest.mark.parametrize("size", range(1, 8))
def test_a_first_answer_in_small_pieces(size: int) -> None:
    talk = Talk(1, 1)
    talk.send(True, request(1))
    for at in range(0, len(response(1)), size):
        talk.send(False, response(1)[at : at + size])
    ask(talk, 2)
    assert_answered(tables_of(talk.packets), 1, 2)
