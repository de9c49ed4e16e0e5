"""What tells whether the side that a reset names has sent it; when a connection was opened and closed."""

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
    at_ms,
    connection_of,
    request,
    response,
    tables_of,
)

SECOND = 10**9
MARKS = (
    "reset_by", "reset_frame", "reset_acknowledges", "reset_ttl_step", "reset_ident_step", "reset_window",
    "reset_stamped",
)  # fmt: skip
STAMPS = bytes.fromhex("0101080a0000000100000002")


def _as_sent(packet: bytes, ttl: int, ident: int) -> bytes:
    return packet[:4] + ident.to_bytes(2, "big") + packet[6:8] + bytes([ttl]) + packet[9:]


def _numbered(talk: Talk, ttl: int = 61) -> list[bytes]:
    """As Linux numbers the packets of a connection, three routers away: a SYN-ACK has no number."""
    return [_as_sent(packet, ttl, number and 700 + number) for number, packet in enumerate(talk.packets)]


@pytest.mark.parametrize(
    ("ttl", "ident", "flags", "options", "said"),
    [
        (61, 705, RST | ACK, STAMPS, (True, 0, 1, 512, True)),
        (61, 708, RST | ACK, STAMPS, (True, 0, 4, 512, True)),
        (64, 0, RST, b"", (False, 3, 65_536 - 704, 512, False)),
        (255, 9_000, RST | ACK, b"", (True, 194, 9_000 - 704, 512, False)),
        (60, 705, RST | ACK, STAMPS, (True, -1, 1, 512, True)),
    ],
)
def test_what_a_reset_has_in_common_with_its_senders_other_packets(
    ttl: int, ident: int, flags: int, options: bytes, said: tuple[object, ...]
) -> None:
    talk = Talk()
    talk.send(True, flags=SYN)
    talk.send(False, flags=SYN | ACK)
    talk.send(True, options=STAMPS)
    talk.send(False, response(1), options=STAMPS)
    sent = _numbered(talk)
    sent[1] = _as_sent(talk.packets[1], 61, 0)
    sent[3] = _as_sent(talk.packets[3], 61, 704)
    asked = talk.send(True, request(2), options=STAMPS)
    reset = _as_sent(talk.send(False, flags=flags, options=options), ttl, ident)
    row = connection_of(tables_of([*sent, asked, reset]))
    assert tuple(row[name] for name in MARKS) == ("broker", 6, *said)
    assert (row["closed_by"], row["close_frame"], row["close_time"]) == ("broker", 6, at_ms(5))


@pytest.mark.parametrize("nearer", [True, False], ids=["the nearer place first", "the farther place first"])
@pytest.mark.parametrize(("ttl", "step"), [(61, 0), (62, 0), (255, 193), (60, -1)])
def test_two_places_of_one_capture_are_not_two_machines(nearer: bool, ttl: int, step: int) -> None:
    """A router lies between them, and either may be the first to be written down."""
    talk = Talk().open()
    ask(talk, 1)
    asked = talk.send(True, request(2))
    packets: list[bytes] = []
    for number, packet in enumerate(talk.packets[:-1]):
        ways = [_as_sent(packet, each, 700 + number) for each in (62, 61)]
        packets += ways if nearer else reversed(ways)
    reset = _as_sent(talk.send(False, flags=RST | ACK), ttl, 720)
    row = connection_of(tables_of([*packets, asked, reset]))
    assert (row["reset_by"], row["reset_ttl_step"]) == ("broker", step)


def test_a_side_that_sent_nothing_and_has_no_stamps_has_nothing_in_common() -> None:
    talk = Talk()
    talk.send(True, flags=SYN)
    talk.send(False, flags=RST | ACK, seq=0)
    row = connection_of(tables_of(talk.packets))
    assert tuple(row[name] for name in MARKS) == ("broker", 2, True, None, None, 512, None)


def test_without_a_reset_there_are_no_marks() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    row = connection_of(tables_of(talk.packets))
    assert tuple(row[name] for name in MARKS) == (None,) * len(MARKS)
    assert (row["close_frame"], row["close_time"]) == (6, at_ms(5))


def test_the_marks_are_those_of_the_reset_that_counts() -> None:
    """Segments under way are each answered by one more; what no receiver would take says nothing."""
    talk = Talk().open()
    ask(talk, 1)
    asked = talk.send(True, request(2))
    stray = talk.send(False, flags=RST, seq=talk.next[False] + 2**30, keep=False)
    first = talk.send(False, flags=RST | ACK, keep=False)
    again = _as_sent(talk.send(False, flags=RST, keep=False), 255, 77)
    talk.packets.remove(asked)
    row = connection_of(tables_of([*talk.packets, asked, stray, first, again]))
    assert (row["reset_frame"], row["reset_acknowledges"], row["reset_ttl_step"]) == (8, True, 0)


def test_the_time_of_an_end_goes_back_to_the_fin_with_a_reset_that_is_taken_back() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, flags=RST, seq=talk.next[False] + 1_000)
    ask(talk, 2)
    talk.send(True, flags=FIN | ACK)
    talk.send(False)
    row = connection_of(tables_of(talk.packets))
    assert (row["closed_by"], row["close_frame"], row["close_time"], row["reset_by"]) == (
        "client", 9, at_ms(8), None,
    )  # fmt: skip


@pytest.mark.parametrize(("again", "waited"), [(0, 1), (1, 2), (3, 4)])
def test_a_connection_took_so_long_to_open(again: int, waited: int) -> None:
    """From the first SYN on, however often it was sent again, to the first answer."""
    talk = Talk()
    first = talk.send(True, flags=SYN)
    sent = [first] * (again + 1)
    sent.append(talk.send(False, flags=SYN | ACK, keep=False))
    sent.append(talk.send(True, keep=False))
    times = [START_NS + number * SECOND for number in range(again + 2)]
    row = connection_of(tables_of(sent, times_ns=[*times, times[-1] + 1]))
    assert (row["syn_retries"], row["connect_ns"]) == (again, waited * SECOND)


def test_without_a_syn_or_its_answer_it_is_not_known_how_long() -> None:
    talk = Talk().open()
    assert connection_of(tables_of(talk.packets[:1]))["connect_ns"] is None
    assert connection_of(tables_of(talk.packets[1:]))["connect_ns"] is None
    row = connection_of(tables_of(talk.packets, times_ns=[START_NS, START_NS - 1, START_NS]))
    assert row["connect_ns"] is None


@pytest.mark.parametrize("ports", [(), (9092,), (50_000,)])
def test_whether_a_port_is_named_is_said_of_connections_without_a_byte_too(ports: tuple[int, ...]) -> None:
    row = connection_of(tables_of(Talk().open().packets, ports=ports))
    assert row["port_named"] == (9092 in ports)
