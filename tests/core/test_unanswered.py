"""What the silence of a broker proves: a call is said to be unanswered only where no byte is missing that may
be its answer."""

from __future__ import annotations

import pytest

from tests.core.hand import ACK, FIN, RST, SYN, Talk, ask, request, response, tables_of

PASSED = ("unanswered", "passed_over")
NOT_CAPTURED = ("response_not_captured", "segment_not_captured")
LOST = ("response_not_captured", "segment_lost")


def verdict(talk: Talk, number: int, **limits: int) -> tuple[str, str | None]:
    tables = tables_of(talk.packets, limits=limits)
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == number)
    return row["status"], row["reason"]


def go_on(talk: Talk, *numbers: int) -> None:
    for number in numbers:
        ask(talk, number)


@pytest.mark.parametrize(("answered", "want"), [(False, PASSED), (True, NOT_CAPTURED)])
def test_a_hole_in_front_of_what_a_request_acknowledges_hides_no_answer(
    answered: bool, want: tuple[str, str]
) -> None:
    """The answer to call 1 is missing, which call 2 acknowledges; the hole is noticed only behind call 2."""
    talk = Talk().open()
    talk.send(True, request(1))
    talk.send(False, response(1), keep=False)
    talk.send(True, request(2))
    if answered:
        talk.send(False, response(2), keep=False)
    go_on(talk, *range(3, 30))
    assert verdict(talk, 1) == NOT_CAPTURED
    assert verdict(talk, 2) == want


def test_a_call_that_lay_behind_a_hole_was_asked_before_it_became_known() -> None:
    """By then the hole that has its answer is known already."""
    talk = Talk().open()
    talk.send(True, request(1), keep=False)
    talk.send(False, response(1))
    talk.send(True, request(2))
    talk.send(False, response(2), keep=False)
    go_on(talk, *range(3, 30))
    assert verdict(talk, 2) == NOT_CAPTURED


@pytest.mark.parametrize("handshake", ["none", "without SYN+ACK"])
@pytest.mark.parametrize(("answered", "want"), [(False, PASSED), (True, NOT_CAPTURED)])
def test_a_stream_without_its_beginning_may_have_begun_with_the_answer(
    handshake: str, answered: bool, want: tuple[str, str]
) -> None:
    """What the request acknowledges is known, and whether the first byte that is seen stands there."""
    talk = Talk()
    if handshake != "none":
        talk.send(True, flags=SYN)
        talk.send(False, flags=SYN | ACK, keep=False)
        talk.send(True)
    talk.send(True, request(1))
    if answered:
        talk.send(False, response(1), keep=False)
    go_on(talk, *range(2, 30))
    assert verdict(talk, 1) == want


def test_payload_of_which_nothing_was_seen_is_missing() -> None:
    """The broker shows acknowledgements alone, and its answers were acknowledged."""
    talk = Talk()
    for number in (1, 2):
        talk.send(True, request(number))
        talk.send(False, keep=number == 2)
        talk.send(False, response(number), keep=False)
    talk.send(True, flags=FIN | ACK)
    assert verdict(talk, 1) == NOT_CAPTURED


@pytest.mark.parametrize(("answered", "want"), [(False, ("unanswered", "connection_reset")), (True, LOST)])
def test_a_reset_beyond_what_was_seen_shows_that_more_was_said(answered: bool, want: tuple[str, str]) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    if answered:
        talk.send(False, response(2), keep=False)
    talk.send(False, flags=RST | ACK)
    assert verdict(talk, 2) == want


@pytest.mark.parametrize("fin", [True, False])
@pytest.mark.parametrize(
    ("answered", "flags", "want"),
    [
        (True, RST, LOST),
        (False, RST | ACK, ("unanswered", "connection_reset")),
    ],
)
def test_a_client_that_has_closed_answers_what_comes_by_a_reset(
    fin: bool, answered: bool, flags: int, want: tuple[str, str]
) -> None:
    """RFC 9293 3.10.7.1: it takes its number from what it answers. `fin`: the client's FIN was captured, not
    only that the broker had it."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, flags=FIN | ACK, keep=fin)
    talk.send(False)
    seen = talk.next[False]
    if answered:
        talk.send(False, response(2), keep=False)
    talk.send(True, flags=flags, ack=seen)
    assert verdict(talk, 2) == want


def test_a_reset_that_answers_what_was_seen_hides_nothing() -> None:
    """The first answer came too late for the client, which was gone; there was no second one."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, request(3))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, response(2))
    talk.send(True, flags=RST)
    assert verdict(talk, 3) == ("unanswered", "connection_reset")


@pytest.mark.parametrize(("answered", "want"), [(False, ("unanswered", "connection_closed")), (True, LOST)])
def test_a_fin_beyond_what_was_seen_shows_that_more_was_said(answered: bool, want: tuple[str, str]) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, flags=FIN | ACK)
    seen = talk.next[False]
    if answered:
        talk.send(False, response(2), keep=False)
    talk.send(False, flags=FIN | ACK)
    if not answered:
        talk.send(True)
    else:
        talk.send(True, ack=seen)
    assert verdict(talk, 2) == want


@pytest.mark.parametrize(
    ("limit", "want"), [(3, ("answered", None)), (1, ("response_not_captured", "limit_reached"))]
)
def test_an_answer_that_had_to_make_room_was_seen(limit: int, want: tuple[str, str | None]) -> None:
    """Recorded in another order: the answers come first, and one of them has room."""
    talk = Talk().open()
    asked = [talk.send(True, request(number), keep=False) for number in (1, 2, 3)]
    for number in (1, 2, 3):
        talk.send(False, response(number))
    talk.packets += asked
    go_on(talk, *range(4, 30))
    assert verdict(talk, 1, orphan_responses=limit) == want
    assert verdict(talk, 3, orphan_responses=limit) == ("answered", None)


@pytest.mark.parametrize(("seen", "want"), [(True, ("unanswered", "connection_reset")), (False, LOST)])
def test_what_goes_on_behind_a_reset_shows_that_more_was_said(seen: bool, want: tuple[str, str]) -> None:
    """The client aborted, and the broker's FIN stands behind an answer: was that sent before? What is seen
    behind the reset was for nobody."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, flags=RST)
    talk.send(False, response(2), keep=seen)
    talk.send(False, flags=FIN | ACK)
    assert verdict(talk, 2) == want


def test_an_id_that_is_used_again_had_its_answer() -> None:
    """The first one's answer is in a hole that the second one acknowledges: what comes is the other."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(7))
    talk.send(False, response(7), keep=False)
    ask(talk, 7)
    ask(talk, 2)
    rows = tables_of(talk.packets)["api_calls"]
    found = [(r["request_frame"], r["response_frame"], r["status"]) for r in rows if r["correlation_id"] == 7]
    first, second = sorted(found)
    assert first == (6, None, "response_not_captured")
    assert second == (7, 8, "answered")


def test_an_id_that_is_used_again_while_nothing_is_missing_is_the_first_ones() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(7))
    ask(talk, 2)
    ask(talk, 7)
    rows = tables_of(talk.packets)["api_calls"]
    answered = [r["request_frame"] for r in rows if r["correlation_id"] == 7 and r["response_frame"]]
    assert answered == [6]


def test_what_the_client_had_when_it_asked_is_no_answer() -> None:
    """A connection from the middle on: answers without requests, one of whose ids is used later, in vain."""
    talk = Talk()
    for number in (7, 8, 9):
        talk.send(False, response(number))
    talk.send(True, request(7))
    go_on(talk, *range(10, 40))
    tables = tables_of(talk.packets, ports=(9092,))
    rows = [r for r in tables["api_calls"] if r["correlation_id"] == 7]
    assert all(r["response_frame"] is None or r["request_frame"] is None for r in rows)
    assert [(r["status"], r["reason"]) for r in rows if r["request_frame"]] == [PASSED]


def test_what_was_sent_before_the_request_arrived_is_no_answer() -> None:
    """They crossed: the broker had not received the request, nor the client what is no answer to it."""
    talk = Talk().open()
    ask(talk, 1)
    had = talk.next[False]
    talk.send(False, response(2))
    talk.send(True, request(2), ack=had)
    go_on(talk, *range(3, 30))
    rows = [r for r in tables_of(talk.packets)["api_calls"] if r["correlation_id"] == 2]
    assert sorted(r["status"] for r in rows) == ["response_only", "unanswered"]
