"""ICMP errors: which connection they are about, and what they say of it (RFC 792, RFC 4443)."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest

from tests.core.hand import ACK, RST, SYN, Talk, connection_of, ipv4, ipv6, names, tables_of, tcp, verdicts_of

ROUTER = "10.0.0.254"
V4 = {
    (3, 0): "net_unreachable",
    (3, 1): "host_unreachable",
    (3, 2): "protocol_unreachable",
    (3, 3): "port_unreachable",
    (3, 4): "too_big",
    (3, 5): "other",
    (3, 6): "net_unreachable",
    (3, 7): "host_unreachable",
    (3, 9): "prohibited",
    (3, 10): "prohibited",
    (3, 13): "prohibited",
    (3, 15): "other",
    (11, 0): "time_exceeded",
    (0, 0): None,
    (5, 1): None,
    (8, 0): None,
}
"""Type and code -> what is said; the names of RFC 792, 1122 3.2.2.1 and 1812 5.2.7.1."""
V6 = {
    (1, 0): "net_unreachable",
    (1, 1): "prohibited",
    (1, 3): "host_unreachable",
    (1, 4): "port_unreachable",
    (1, 5): "prohibited",
    (1, 6): "prohibited",
    (2, 0): "too_big",
    (3, 0): "time_exceeded",
    (128, 0): None,
    (135, 0): None,
}
"""The same of RFC 4443 3; 128 and 135 are echo and neighbour solicitation."""


def icmp(kind: int, code: int, quoted: bytes) -> bytes:
    """The checksum is left 0."""
    return struct.pack(">BBHI", kind, code, 0, 0) + quoted


def error(kind: int, code: int, quoted: bytes, source: str = ROUTER) -> bytes:
    """An IPv4 packet to the client."""
    return ipv4(icmp(kind, code, quoted), protocol=1, source=source, target="10.0.0.1")


def syn() -> bytes:
    return Talk().send(True, flags=SYN)


@pytest.mark.parametrize(("number", "word"), V4.items())
def test_an_error_about_a_syn_is_told_of_its_connection(number: tuple[int, int], word: str | None) -> None:
    packets = [syn(), error(*number, syn()[:28])]
    row = connection_of(tables_of(packets))
    known = word is not None
    assert (row["icmp_error"], row["icmp_from"], row["icmp_frame"]) == (
        word, ROUTER if known else None, 2 if known else None,
    )  # fmt: skip
    assert (row["client_packets"], row["broker_packets"], row["refused"], row["last_frame"]) == (
        1,
        0,
        False,
        1,
    )
    assert verdicts_of(packets) == {"tcp": 1, "not_tcp": 1}


@pytest.mark.parametrize(("number", "word"), V6.items())
def test_the_same_of_ipv6(number: tuple[int, int], word: str | None) -> None:
    first = ipv6(tcp(seq=7, flags=SYN))
    told = ipv6(icmp(*number, first), following=58, source="fd00::9", target="fd00::1")
    row = connection_of(tables_of([first, told]))
    assert (row["icmp_error"], row["icmp_from"]) == (word, "fd00::9" if word else None)


def test_the_packet_that_is_quoted_may_be_the_brokers() -> None:
    talk = Talk().open()
    answer = talk.send(False, b"x" * 100)
    told = ipv4(icmp(3, 13, answer[:28]), protocol=1, source=ROUTER, target="10.0.0.2")
    row = connection_of(tables_of([*talk.packets, told]))
    assert (row["icmp_error"], row["icmp_frame"]) == ("prohibited", 5)


OTHERS = {
    "another port": ipv4(tcp(seq=999, flags=SYN, ports=(50_001, 9092))),
    "another connection's numbers": ipv4(tcp(seq=999 + 2**30)),
    "UDP": ipv4(struct.pack(">HHHH", 50_000, 9092, 8, 0), protocol=17),
    "a later fragment": ipv4(tcp(seq=999), fragment=3),
    "too little": ipv4(tcp(seq=999))[:27],
    "nothing": b"",
    "a broken header": b"\x41" + ipv4(tcp(seq=999))[1:],
    "neither version": b"\x75" + ipv4(tcp(seq=999))[1:],
}


@pytest.mark.parametrize("quoted", OTHERS.values(), ids=OTHERS)
def test_what_quotes_nothing_of_it_says_nothing_of_it(quoted: bytes) -> None:
    tables = tables_of([syn(), error(3, 3, quoted)])
    assert connection_of(tables)["icmp_error"] is None
    assert names(tables) == []


def test_the_first_error_stays_but_one_about_size() -> None:
    quoted = syn()[:28]
    sizes, refusals = error(3, 4, quoted), (error(3, 1, quoted, "10.0.0.3"), error(3, 3, quoted))
    row = connection_of(tables_of([syn(), sizes, *refusals]))
    assert (row["icmp_error"], row["icmp_from"], row["icmp_frame"]) == ("host_unreachable", "10.0.0.3", 3)
    row = connection_of(tables_of([syn(), *refusals, sizes]))
    assert (row["icmp_error"], row["icmp_frame"]) == ("host_unreachable", 2)


def test_an_error_after_the_end_is_of_another_connection() -> None:
    talk = Talk()
    first = talk.send(True, flags=SYN)
    talk.send(False, flags=RST | ACK, seq=0)
    row = connection_of(tables_of([*talk.packets, error(3, 3, first[:28])]))
    assert (row["refused"], row["icmp_error"]) == (True, None)


def test_an_error_before_its_connection_opens_none() -> None:
    assert tables_of([error(3, 3, syn()[:28])])["connections"] == []


@pytest.mark.parametrize("number", range(4))
def test_each_bucket_hears_of_its_own_connections(number: int) -> None:
    """As tasks that read a part of a capture do."""
    packets = []
    for port in range(50_000, 50_016):
        first = ipv4(tcp(seq=9, flags=SYN, ports=(port, 9092)))
        packets += [first, error(3, 3, first[:28])]
    rows = tables_of(packets, bucket=(number, 4))["connections"]
    assert len(rows) < 16
    assert {row["icmp_error"] for row in rows} <= {"port_unreachable"}
    assert all(row["icmp_frame"] == row["first_frame"] + 1 for row in rows)


def test_addresses_are_written_as_everywhere() -> None:
    row = connection_of(tables_of([syn(), error(3, 3, syn()[:28], "192.0.2.1")]))
    assert row["icmp_from"] == str(ip_address("192.0.2.1"))
