"""One conversation seen at two places counts once; two that look alike stay two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwsniff.analysis.analyze import analyze
from tests.core.hand import ACK, BROKER, CLIENT, FIN, START_NS, Talk, ask
from tests.traffic.files import pcap
from tests.traffic.places import End, interleaved, renamed

PROXY = ("10.0.0.2", 40_000)
OUTSIDE = ("198.51.100.7", 61_000)
SERVER = ("10.0.0.9", 9092)


def talk(
    client_isn: int = 999,
    broker_isn: int = 4_999,
    calls: int = 6,
    first: int = 1,
    *,
    header: bytes = b"",
    closed: bool = True,
) -> list[bytes]:
    said = Talk(client_isn, broker_isn).open()
    if header:
        said.send(True, header)
    for number in range(first, first + calls):
        ask(said, number)
    if closed:
        said.send(True, flags=FIN | ACK)
        said.send(False, flags=FIN | ACK)
        said.send(True)
    return said.packets


def proxied(port: int) -> bytes:
    """The first line of what a proxy opens for this port of the client (PROXY protocol, version 1)."""
    return f"PROXY TCP4 {CLIENT[0]} {BROKER[0]} {port} {BROKER[1]}\r\n".encode()


def under(packets: list[bytes], client: End, broker: End = BROKER) -> list[bytes]:
    return [renamed(packet, {CLIENT: client, BROKER: broker}) for packet in packets]


def twins_in(path: Path, output: Path | None = None) -> list[tuple[int, int | None]]:
    rows: list[dict[str, Any]] = analyze(path, output=output).connections.to_pylist()
    numbers = {row["connection_id"]: place for place, row in enumerate(sorted(rows, key=_by_id))}
    return [(numbers[row["connection_id"]], numbers.get(row["twin_of"])) for row in sorted(rows, key=_by_id)]


def _by_id(row: dict[str, Any]) -> int:
    number: int = row["connection_id"]
    return number


def capture(tmp_path: Path, *streams: list[bytes], behind_ns: int = 50_000) -> Path:
    path = tmp_path / "places.pcap"
    rows = interleaved(streams, start_ns=START_NS, step_ns=1_000_000, behind_ns=behind_ns)
    path.write_bytes(pcap(rows, 101, nanoseconds=True))
    return path


@pytest.mark.parametrize("calls", [0, 1, 6])
@pytest.mark.parametrize("written", [True, False])
def test_before_and_behind_nat(tmp_path: Path, calls: int, written: bool) -> None:
    """The numbers of both sides stay: whatever the connection carries, it is the same."""
    path = capture(tmp_path, talk(calls=calls), under(talk(calls=calls), OUTSIDE))
    assert twins_in(path, tmp_path / "out" if written else None) == [(0, None), (1, 0)]


def test_three_places_are_twins_of_the_first(tmp_path: Path) -> None:
    path = capture(tmp_path, talk(), under(talk(), OUTSIDE), under(talk(), ("192.0.2.1", 9)))
    assert twins_in(path) == [(0, None), (1, 0), (2, 0)]


def test_both_sides_of_a_proxy(tmp_path: Path) -> None:
    """Other numbers, the same messages; the proxy is the one's broker and the other's client."""
    path = capture(tmp_path, talk(), under(talk(77, 88), PROXY, SERVER))
    assert twins_in(path) == [(0, None), (1, 0)]


@pytest.mark.parametrize("calls", [1, 3])
def test_a_short_conversation_on_both_sides_of_a_proxy(tmp_path: Path, calls: int) -> None:
    path = capture(tmp_path, talk(calls=calls), under(talk(77, 88, calls=calls), PROXY, SERVER))
    assert twins_in(path) == [(0, None), (1, 0)]
    assert len(analyze(path).findings) == 1


def test_a_header_proves_a_short_conversation_through_a_proxy_beside_the_client(tmp_path: Path) -> None:
    behind = talk(77, 88, calls=2, header=proxied(CLIENT[1]))
    beside = (CLIENT[0], BROKER[1])
    path = capture(tmp_path, under(talk(calls=2), CLIENT, beside), under(behind, (CLIENT[0], 40_000), SERVER))
    assert twins_in(path) == [(0, None), (1, 0)]


@pytest.mark.parametrize("calls", [2, 6])
def test_a_header_says_which_of_two_clients_that_say_the_same(tmp_path: Path, calls: int) -> None:
    """The one that is seen first at the one side is not the first at the other."""
    path = capture(
        tmp_path,
        talk(calls=calls),
        under(talk(11, 22, calls=calls), (CLIENT[0], 50_001)),
        under(talk(33, 44, calls=calls, header=proxied(50_001)), PROXY, SERVER),
        under(talk(55, 66, calls=calls, header=proxied(50_000)), (PROXY[0], 40_001), SERVER),
    )
    assert twins_in(path) == [(0, None), (1, None), (2, 1), (3, 0)]


NO_TWINS = {
    "other messages under the same numbers": [talk(), under(talk(first=50), OUTSIDE)],
    "more messages under the same numbers": [talk(), under(talk(calls=7), OUTSIDE)],
    "two clients that say the same to one broker": [talk(), under(talk(77, 88), OUTSIDE)],
    "two clients that say the same to two brokers": [talk(), under(talk(77, 88), OUTSIDE, SERVER)],
    "too few messages of connections that were not closed": [
        talk(calls=3, closed=False),
        under(talk(77, 88, calls=3, closed=False), PROXY, SERVER),
    ],
    "too few messages between two hosts": [
        talk(calls=3),
        under(talk(77, 88, calls=3), PROXY, (CLIENT[0], 9093)),
    ],
    "too few messages, and the proxy began first": [
        under(talk(77, 88, calls=3), PROXY, SERVER),
        talk(calls=3),
    ],
    "a header that names another client": [
        talk(),
        under(talk(77, 88, header=proxied(50_009)), PROXY, SERVER),
    ],
    "other messages behind a proxy": [talk(), under(talk(77, 88, first=50), PROXY, SERVER)],
    "two clients that say the same through a proxy": [
        talk(),
        under(talk(11, 22), ("10.0.0.1", 50_001)),
        under(talk(33, 44), PROXY, SERVER),
        under(talk(55, 66), ("10.0.0.2", 40_001), SERVER),
    ],
}


@pytest.mark.parametrize("name", NO_TWINS)
def test_what_proves_nothing(tmp_path: Path, name: str) -> None:
    found = twins_in(capture(tmp_path, *NO_TWINS[name]))
    assert [twin for _, twin in found] == [None] * len(NO_TWINS[name])


@pytest.mark.parametrize("behind", [under(talk(), OUTSIDE), under(talk(77, 88), PROXY, SERVER)])
def test_not_at_the_same_time(tmp_path: Path, behind: list[bytes]) -> None:
    """An hour later it is another connection, whatever its numbers are."""
    assert twins_in(capture(tmp_path, talk(), behind, behind_ns=3_600 * 10**9)) == [(0, None), (1, None)]


def test_a_twin_in_another_file(tmp_path: Path) -> None:
    for name, packets in (("a.pcap", talk()), ("b.pcap", under(talk(), OUTSIDE))):
        rows = interleaved([packets], start_ns=START_NS, step_ns=1_000_000, behind_ns=0)
        (tmp_path / name).write_bytes(pcap(rows, 101, nanoseconds=True))
    assert twins_in(tmp_path) == [(0, None), (1, 0)]


@pytest.mark.parametrize("written", [True, False])
def test_findings_say_that_they_count_once(tmp_path: Path, written: bool) -> None:
    path = capture(tmp_path, talk(), under(talk(), OUTSIDE))
    analysis = analyze(path, output=tmp_path / "out" if written else None)
    assert analysis.findings["finding"].to_pylist() == ["captured_twice"]
