"""What a TLS handshake shows, of hellos made by hand, in pieces, cut short and damaged."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from kwsniff.core.tls import hello
from kwsniff.core.tls.hello_texts import NAMES
from tests.core.guard import flush_against_guard_page
from tests.traffic.hello import (
    CLIENT,
    client_hello,
    extensions,
    message,
    records,
    server_hello,
    server_name,
    vector,
)

ASKED, ANSWERED = records(client_hello()), records(server_hello())
SHOWN = (0, "1.3", "kafka.example", "TLS_AES_256_GCM_SHA384")


def test_both_hellos() -> None:
    assert hello.read([(0, ASKED), (1, ANSWERED)]) == SHOWN
    assert hello.read([(1, ASKED), (0, ANSWERED)]) == (1, *SHOWN[1:])


@pytest.mark.parametrize(
    ("legacy", "chosen", "text"),
    [
        (0x0303, 0x0304, "1.3"),
        (0x0303, None, "1.2"),
        (0x0302, None, "1.1"),
        (0x0301, None, "1.0"),
        (0x0300, None, "SSL 3.0"),
        (0x0303, 0x7F1C, "0x7f1c"),
        (0x0305, None, "0x0305"),
    ],
)
def test_the_version_agreed_on(legacy: int, chosen: int | None, text: str) -> None:
    answered = records(server_hello(legacy=legacy, chosen=chosen))
    assert hello.read([(1, answered)]) == (0, text, None, "TLS_AES_256_GCM_SHA384")


def test_suites_without_a_name_are_shown_by_number() -> None:
    for suite, text in ((0xC02F, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), (0xFEED, "0xfeed"), (0, "0x0000")):
        assert hello.read([(1, records(server_hello(suite)))])[3] == text


def test_names_of_suites_are_those_of_wireshark() -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    said = subprocess.run(["tshark", "-G", "values"], capture_output=True, text=True, check=True).stdout
    rows = (line.split("\t") for line in said.splitlines())
    theirs = {int(row[2], 0): row[3] for row in rows if row[:2] == ["V", "tls.handshake.ciphersuite"]}
    assert {number: name.decode() for number, name in NAMES.items()}.items() <= theirs.items()


def test_in_records_and_pieces_of_any_size() -> None:
    for record in (1, 3, 4, 5, 39, 100):
        asked, answered = records(client_hello(), record), records(server_hello(), record)
        for piece in (1, 2, 7, 60, 1000):
            parts = [(0, asked[at : at + piece]) for at in range(0, len(asked), piece)]
            parts += [(1, answered[at : at + piece]) for at in range(0, len(answered), piece)]
            random.Random(piece).shuffle(order := [endpoint for endpoint, _ in parts])
            queues = {side: iter([data for endpoint, data in parts if endpoint == side]) for side in (0, 1)}
            assert hello.read([(side, next(queues[side])) for side in order]) == SHOWN


def test_cut_anywhere_nothing_is_wrong() -> None:
    """Either what is true, or nothing; the name and the suite as soon as they are whole."""
    named = ASKED.index(b"kafka.example") + len(b"kafka.example")
    suite = ANSWERED.index(b"\x13\x02") + 2
    version = ANSWERED.index(b"\0\x2b\0\2") + 6
    for cut in range(len(ASKED)):
        found = hello.read([(0, ASKED[:cut]), (0, None)])
        assert found[1:] == (None, "kafka.example" if cut >= named else None, None)
    for cut in range(len(ANSWERED)):
        found = hello.read([(1, ANSWERED[:cut]), (1, None)])
        assert found[1] == ("1.3" if cut >= version else None)
        assert found[3] == (SHOWN[3] if cut >= suite else None)


def test_a_cut_hello_of_1_2_tells_no_version() -> None:
    answered = records(server_hello(0xC02F, chosen=None))
    assert hello.read([(1, answered[:-1]), (1, None)])[1] is None


def test_what_follows_is_not_read() -> None:
    again = records(client_hello(b"other.example")) + b"\x17\x03\x03\x40\0" + bytes(64)
    assert hello.read([(0, ASKED + again), (1, ANSWERED + records(server_hello(0x1301)))]) == SHOWN


def test_a_client_does_not_answer_and_a_server_does_not_ask() -> None:
    assert hello.read([(0, ASKED), (0, ANSWERED)]) == (0, None, "kafka.example", None)
    assert hello.read([(0, ASKED), (1, records(client_hello(b"other")))])[2] == "kafka.example"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x17\x03\x03\x00\x10" + bytes(16),  # the middle of a connection
        b"\x15\x03\x01\x00\x02\x02\x28",  # an alert
        b"\x16\x03\x03\x00\x28" + b"\x8f" * 40,  # an encrypted Finished
        b"\x16\x03\x03\x00\x00" + ASKED,
        b"\x16\x03\x03\xff\xff" + client_hello(),
        b"\x16\x02\x03\x00\x80" + client_hello(),
        records(b"\x01\xff\xff\xff" + client_hello()[4:]),
        records(message(CLIENT, b"\x03\x03" + bytes(32) + b"\xff" + bytes(90))),
        records(message(CLIENT, b"\x05\x03" + client_hello()[6:])),
    ],
)
def test_what_is_no_hello_shows_nothing(data: bytes) -> None:
    assert hello.read([(0, data), (0, None)]) == (None, None, None, None)


@pytest.mark.parametrize("name", [b"", b"a b", b"\xff\xfe", b"x" * 256, b"a\0b", b"\x1b[31m"])
def test_names_that_are_none(name: bytes) -> None:
    assert hello.read([(0, records(client_hello(name)))]) == (0, None, None, None)


def test_lengths_that_lie_stay_inside_their_vector() -> None:
    body = b"\x03\x03" + bytes(32) + b"\0" + vector(b"\x13\x01", 2) + vector(b"\0", 1)
    lies = (
        b"\xff\xff" + extensions(server_name(b"name"))[2:],
        extensions((0, b"\0\x07\0\xff\xffname")),
        extensions((0, b"\0\x07\0\0\x05name")),
        extensions((9, b""))[:-2] + b"\xff\xff" + extensions(server_name(b"name"))[2:],
    )
    for lie in lies:
        assert hello.read([(0, records(message(CLIENT, body + lie)))])[2] in (None, "name")


def test_a_hello_of_a_megabyte_is_not_collected() -> None:
    assert hello.read([(0, records(client_hello(padding=60_000)))]) == (None, None, None, None)
    assert hello.read([(0, records(client_hello(padding=9_000)))]) == (0, None, "kafka.example", None)


def test_every_cut_and_random_damage_flush_against_a_guard_page() -> None:
    dice = random.Random(7)
    for number in range(6_000):
        whole = dice.choice((ASKED, ANSWERED, records(client_hello(), 11), records(server_hello(), 3)))
        data = bytearray(whole[: dice.randrange(len(whole) + 1)])
        for _ in range(number % 4):
            if data:
                data[dice.randrange(len(data))] = dice.choice(
                    (0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256))
                )
        cut = dice.randrange(len(data) + 1)
        with (
            flush_against_guard_page(bytes(data[:cut])) as one,
            flush_against_guard_page(bytes(data[cut:])) as two,
        ):
            found = hello.read([(0, one), (0, two), (0, None)])
        assert found == hello.read([(0, bytes(data)), (0, None)])
