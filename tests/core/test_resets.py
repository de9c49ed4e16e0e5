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
    assert (row["end"], row["closed_by"], row["client_missing_bytes"], row["broker_missing_bytes"]) == (
        "open", None, 0, 0,
    )  # fmt: skip


def test_a_reset_with_the_expected_number_that_nobody_took() -> None:
    """What goes on behind it is a connection of its own; a call is lost, and none is blamed on the broker."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, flags=RST)
    for number in (2, 3, 4, 5):
        ask(talk, number)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert [row["end"] for row in tables["connections"]] == ["reset", "open"]
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
    assert connection_of(tables)["end"] == "reset"
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
    assert (connection_of(tables)["end"], names(tables)) == ("open", ["handshake_out_of_place"])


def test_a_refused_connection() -> None:
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    talk.send(True, flags=SYN, seq=70_000)
    talk.send(False, flags=RST | ACK)
    row = connection_of(tables_of(talk.packets))
    assert (row["refused"], row["syn_retries"], row["closed_by"], row["close_frame"]) == (
        True,
        1,
        "broker",
        3,
    )


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
    assert (row["end"], row["closed_by"], row["close_frame"], row["syn_retries"], row["refused"]) == (
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
    assert names(tables) == []


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
