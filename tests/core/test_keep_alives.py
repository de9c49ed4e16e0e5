"""Keep-alives repeat no data: RFC 1122 4.2.3.6, RFC 9293 3.8.4."""

from __future__ import annotations

import pytest

from tests.core.hand import Talk, ask, assert_answered, connection_of, names, request, response, tables_of


@pytest.mark.parametrize("garbage", [b"", b"\0", b"?"])
def test_keep_alives_are_no_data(garbage: bytes) -> None:
    """RFC 1122 4.2.3.6: one number before the next one, with or without one byte of garbage."""
    talk = Talk().open()
    ask(talk, 1)
    for _ in range(3):
        for side in (True, False):
            talk.send(side, garbage, seq=talk.next[side] - 1)
            talk.send(not side)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["client_retransmitted_bytes"], row["broker_retransmitted_bytes"]) == (0, 0)
    assert (names(tables), tables["tcp_events"]) == ([], [])


def test_keep_alive_before_anything_else_is_no_data() -> None:
    """Of a connection that was idle when the capture began; its peer answers with the next number."""
    talk = Talk(2_000, 8_000)
    for _ in range(2):
        talk.send(False, ack=2_000)
        talk.send(True, b"\0", seq=1_999)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_retransmitted_bytes"]) == (len(request(1)), 0)
    assert names(tables) == []


def test_keep_alive_as_the_first_packet_of_all_is_no_data() -> None:
    """Its acknowledgement shows that nothing follows it."""
    talk = Talk(2_000, 8_000)
    for _ in range(2):
        talk.send(True, b"\0", seq=1_999)
        talk.send(False, ack=2_000)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_retransmitted_bytes"]) == (len(request(1)), 0)
    assert names(tables) == []


def test_last_byte_that_the_receiver_asks_for_is_sent_again() -> None:
    """It was a segment of its own, and nothing acknowledges it."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2)[:-1])
    talk.send(False)
    last = talk.send(True, request(2)[-1:], keep=False)
    talk.packets += [last, last]
    talk.send(False, response(2))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["client_retransmitted_bytes"] == 1
    assert [event["kind"] for event in tables["tcp_events"]] == ["retransmission"]
