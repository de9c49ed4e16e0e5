"""How connections begin and end (RFC 9293, 5961, 7413), and which of their bytes are calls."""

from __future__ import annotations

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    Talk,
    ask,
    assert_answered,
    connection_of,
    names,
    request,
    response,
    tables_of,
)


def test_syn_with_data() -> None:
    """RFC 7413: the request is in the SYN and is answered at once."""
    talk = Talk()
    talk.send(True, request(1), SYN)
    talk.send(False, flags=SYN | ACK)
    talk.send(False, response(1))
    talk.send(True)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert (connection_of(tables)["client_retransmitted_bytes"], names(tables)) == (0, [])


def test_syn_with_data_that_the_broker_did_not_take() -> None:
    """RFC 7413 3: then only the SYN is acknowledged, and the data comes again."""
    talk = Talk()
    first = talk.next[True]
    talk.send(True, request(1), SYN)
    talk.next[True] = first + 1
    talk.send(False, flags=SYN | ACK)
    talk.send(True, request(1))
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_retransmitted_bytes"]) == (len(request(1)), len(request(1)))
    assert names(tables) == []


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("flags", [RST, RST | ACK, RST | ACK | PSH])
def test_reset(flags: int, from_client: bool) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(from_client, flags=flags)
    tables = tables_of(talk.packets)
    assert connection_of(tables)["ending"] == "reset"
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == 2)
    assert (row["status"], row["reason"]) == ("unanswered", "connection_reset")


def test_reset_with_data() -> None:
    """RFC 9293 3.5.2: an RST may say in words why; the words are no part of the stream."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, b"go away", RST | ACK)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["ending"], row["broker_bytes"]) == ("reset", len(response(1)))


def test_refused_connection() -> None:
    """RFC 9293 3.5.2: to a SYN the answer is an RST with number 0."""
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    talk.send(False, flags=RST | ACK)
    row = connection_of(tables_of(talk.packets))
    assert (row["ending"], row["protocol"], row["client_port"]) == ("reset", "empty", 50_000)


@pytest.mark.parametrize(("flags", "seq"), [(RST | ACK, 5_000), (RST, 5_000)])
def test_a_reset_with_a_number_of_its_own_refuses_nothing(flags: int, seq: int) -> None:
    """What answers a SYN has the number 0 and an acknowledgement (RFC 9293 3.10.7.1)."""
    talk = Talk(70_000)
    talk.send(True, flags=SYN)
    talk.send(False, flags=flags, seq=seq)
    row = connection_of(tables_of(talk.packets))
    assert (row["refused"], row["ending"]) == (False, "reset")


def test_reset_outside_the_window_is_ignored() -> None:
    """RFC 5961 3: a blind attacker's number."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, flags=RST, seq=talk.next[False] + 2**31 - 5)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["ending"] == "open"


def test_simultaneous_open() -> None:
    """RFC 9293 3.5, figure 7: two SYN cross; each is answered by a SYN+ACK."""
    talk = Talk()
    talk.send(True, flags=SYN)
    talk.send(False, flags=SYN)
    talk.send(True, flags=SYN | ACK, seq=talk.next[True] - 1)
    talk.send(False, flags=SYN | ACK, seq=talk.next[False] - 1)
    ask(talk, 1)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["handshake"] is True


@pytest.mark.parametrize("last_ack", [True, False])
def test_half_closed(last_ack: bool) -> None:
    """A client that has nothing more to ask may still be answered."""
    talk = Talk().open()
    talk.send(True, request(1))
    talk.send(True, request(2), FIN | ACK)
    talk.send(False)
    talk.send(False, response(1))
    talk.send(True)
    talk.send(False, response(2), FIN | ACK)
    if last_ack:
        talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["ending"] == "fin"


@pytest.mark.parametrize("ending", ["fin", "reset", "reused"])
def test_ports_used_again(ending: str) -> None:
    """Also when the end of the first connection was not seen, and when its numbers are near."""
    talk = Talk().open()
    ask(talk, 1)
    if ending == "fin":
        talk.send(True, flags=FIN | ACK)
        talk.send(False, flags=FIN | ACK)
        talk.send(True)
    elif ending == "reset":
        talk.send(True, flags=RST)
    talk.next = {True: talk.next[True] + 1, False: talk.next[False] + 64_000}
    ask(talk.open(), 1)
    tables = tables_of(talk.packets)
    assert [row["ending"] for row in tables["connections"]] == [ending, "open"]
    assert_answered(tables, 1, 1)
    assert len({row["connection_id"] for row in tables["api_calls"]}) == 2


def test_repeated_handshake_is_one_connection() -> None:
    talk = Talk()
    for side, flags in ((True, SYN), (False, SYN | ACK)):
        talk.send(side, flags=flags)
        talk.send(side, flags=flags, seq=talk.next[side] - 1)
    talk.send(True)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    assert (connection_of(tables)["handshake"], names(tables)) == (True, [])


def test_syn_inside_a_connection_that_is_only_acknowledged() -> None:
    """RFC 9293 3.10.7.4: an old or forged SYN is answered by where the receiver stands; all goes on."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, flags=SYN, seq=77)
    talk.send(False)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert "unanswered" not in [row["status"] for row in tables["api_calls"]]
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["ending"] == "open"
