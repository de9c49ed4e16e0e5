"""Captures of one conversation at two places: it counts once. A rotation is read as one capture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.analysis import capture_points
from kwsniff.analysis.capture_points import Samples, find_places, join_samples, samples_of_each
from kwsniff.cli.main import run
from kwsniff.findings.views import READ
from tests.core.hand import Talk, ask, request, response
from tests.traffic.files import Frame, pcap

pytestmark = pytest.mark.sample_tests(7)

CAPTURES = Path(__file__).parents[2] / "captures"
START = 1_700_000_000 * 10**9
MS, SECOND = 10**6, 10**9
PAIRS = sorted(
    path.parent for path in CAPTURES.glob("*/*/client.pcap") if (path.parent / "broker.pcap").exists()
)


def _written(path: Path, packets: Sequence[tuple[int, bytes]]) -> Path:
    """`packets`: time in nanoseconds since START, and bytes."""
    path.write_bytes(
        pcap([Frame(START + at, told, len(told)) for at, told in packets], 101, nanoseconds=True)
    )
    return path


def _talk(calls: int = 24) -> list[tuple[int, bytes]]:
    """Beside the client; every call takes 10 ms. IP's numbers are of their own, as Linux gives them."""
    talk = Talk().open()
    for number in range(calls):
        ask(talk, number)
        talk.send(True)
    return [
        (at * 10 * MS, told[:4] + (100 + at).to_bytes(2, "big") + told[6:])
        for at, told in enumerate(talk.packets)
    ]


def _moved(packets: Iterable[tuple[int, bytes]], clock: int) -> list[tuple[int, bytes]]:
    """Beside the broker 4 ms away, whose clock shows so much more: requests come later, responses earlier."""
    there = [(at + clock + (2 * MS if told[12:16][-1] == 1 else -2 * MS), told) for at, told in packets]
    return sorted(there, key=lambda each: each[0])


def _seen(found: Any) -> tuple[int, int, int]:
    """Calls, connections that count, bytes that they sent again."""
    rows = found.connections.to_pylist()
    counting = {row["connection_id"]: row for row in rows if row["twin_of"] is None}
    calls = sum(row["connection_id"] in counting for row in found.api_calls.to_pylist())
    again = sum(
        row[f"{side}_retransmitted_bytes"] for row in counting.values() for side in ("client", "broker")
    )
    return calls, len(counting), again


def _notes(found: Any) -> list[str]:
    return [note for row in found.captures.to_pylist() for note in row["notes"]]


@pytest.mark.sample(3)
@pytest.mark.parametrize("clock", [-SECOND, 0, 300 * MS, 3600 * SECOND])
@pytest.mark.parametrize("num_analyzers", [1, 2])
def test_a_conversation_at_two_places_counts_once(tmp_path: Path, clock: int, num_analyzers: int) -> None:
    here, there = _talk(), _moved(_talk(), clock)
    pair = [_written(tmp_path / "a.pcap", here), _written(tmp_path / "b.pcap", there)]
    found = kwsniff.analyze(pair, jobs=num_analyzers)
    assert _seen(found) == (24, 1, 0)
    assert sum(row["retransmitted_bytes"] for row in found.captures.to_pylist()) == 0
    assert [row["finding"] for row in found.findings.to_pylist() if row["severity"] != "info"] == []
    (note,) = _notes(found)
    assert ("the clock is about" in note) == bool(clock)


def test_the_note_tells_the_difference_of_the_clocks(tmp_path: Path) -> None:
    pair = [_written(tmp_path / "a.pcap", _talk()), _written(tmp_path / "b.pcap", _moved(_talk(), SECOND))]
    (note,) = _notes(kwsniff.analyze(pair))
    assert note == (
        f"holds packets of {pair[0]}, seen at another place, where the clock is about 1 s ahead "
        "(48 of 48 that were compared); what both show counts once"
    )


def test_a_conversation_that_one_place_saw_from_later_on_counts_once(tmp_path: Path) -> None:
    """The broker's capture began in its middle and ended after the client's."""
    here, there = _talk(40)[:80], _moved(_talk(40), 2 * SECOND)[50:]
    pair = [_written(tmp_path / "a.pcap", here), _written(tmp_path / "b.pcap", there)]
    calls, connections, again = _seen(kwsniff.analyze(pair, tables=READ))
    assert (connections, again) == (1, 0)
    assert calls == 26  # of 80 packets, three of the handshake


def test_what_one_place_lost_is_no_retransmission_of_the_other(tmp_path: Path) -> None:
    """A request is lost on the way, and sent again: once at the client's, for all that the broker's shows."""
    talk = Talk().open()
    for number in range(20):
        ask(talk, number)
    lost = talk.send(True, request(20))
    talk.packets.append(lost)
    talk.send(False, response(20))
    at = [number * 10 * MS for number in range(len(talk.packets))]
    at[-2:] = [at[-3] + 250 * MS, at[-3] + 255 * MS]
    here = [(time, told[:4] + (7 + number).to_bytes(2, "big") + told[6:]) for number, (time, told) in
            enumerate(zip(at, talk.packets, strict=True))]  # fmt: skip
    there = _moved(here[:-3] + here[-2:], SECOND)
    pair = [_written(tmp_path / "a.pcap", here), _written(tmp_path / "b.pcap", there)]
    assert _seen(kwsniff.analyze(pair, tables=READ)) == (21, 1, len(request(20)))


def test_a_rotation_goes_on(tmp_path: Path) -> None:
    talk = _talk()
    parts = [talk[:30], talk[30:31], talk[31:]]
    files = [_written(tmp_path / f"r{number}.pcap", part) for number, part in enumerate(parts)]
    found = kwsniff.analyze(files)
    assert _seen(found) == (24, 1, 0)
    assert found.connections.num_rows == 1
    assert _notes(found) == []


def test_a_rotation_at_one_place_and_a_file_of_another(tmp_path: Path) -> None:
    talk = _talk()
    files = [_written(tmp_path / f"client-{n}.pcap", part) for n, part in enumerate((talk[:31], talk[31:]))]
    files.append(_written(tmp_path / "broker.pcap", _moved(talk, -SECOND)))
    found = kwsniff.analyze(files)
    assert _seen(found) == (24, 1, 0)
    assert found.connections.num_rows == 2


def test_addresses_that_are_used_again_are_no_second_place(tmp_path: Path) -> None:
    """The same client comes back with the same port and other numbers, in another file."""
    talk = Talk(77_000, 99_000).open()
    for number in range(24):
        ask(talk, number)
    later = [(60 * SECOND + at * MS, told) for at, told in enumerate(talk.packets)]
    files = [_written(tmp_path / "a.pcap", _talk()), _written(tmp_path / "b.pcap", later)]
    found = kwsniff.analyze(files)
    assert _seen(found)[:2] == (48, 2)
    assert _notes(found) == []


def test_why_says_it_and_nothing_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [_written(tmp_path / "a.pcap", _talk()), _written(tmp_path / "b.pcap", _moved(_talk(), SECOND))]
    assert run(["why", *map(str, pair)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("No finding in 24 calls from 1 client")


@pytest.mark.sample(6)
@pytest.mark.parametrize("folder", PAIRS, ids=lambda path: path.name)
def test_recordings_of_client_and_broker_count_once(folder: Path) -> None:
    """The client's addresses and ports are those of one file or the other, each once."""
    alone = [kwsniff.analyze(folder / f"{side}.pcap", tables=READ) for side in ("client", "broker")]
    found = kwsniff.analyze([folder / "client.pcap", folder / "broker.pcap"], tables=READ)
    calls, connections, again = _seen(found)
    assert max(_seen(each)[0] for each in alone) <= calls
    assert again in {_seen(each)[2] for each in alone}
    ends = {
        (row["client_address"], row["client_port"]) for each in alone for row in each.connections.to_pylist()
    }
    assert connections == len(ends)


# -- samples ------------------------------------------------------------------------------------------


def test_one_capture_alone_keeps_no_samples() -> None:
    assert samples_of_each(1) == 0
    assert samples_of_each(2) == 4096
    assert samples_of_each(10**6) == 64


def test_long_captures_agree_in_what_they_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 packets 64 are kept at most, of a part of them other ones, too: those of the whole are among
    what is kept of the part."""
    monkeypatch.setattr(capture_points, "_EACH", 64)
    pair = [
        _written(tmp_path / "a.pcap", _talk(1000)),
        _written(tmp_path / "b.pcap", _moved(_talk(1000), SECOND)[:500]),
    ]
    (note,) = _notes(kwsniff.analyze(pair))
    common, looked_at = (int(word) for word in note.split("(")[1].split(" that")[0].split(" of "))
    assert common == looked_at
    assert 3 <= common <= 64
    assert _seen(kwsniff.analyze(pair, tables=READ))[:2] == (1000, 1)


def test_samples_of_parts_are_those_of_the_whole() -> None:
    parts = [(mask, b"".join(packet.to_bytes(8, "little") + (5).to_bytes(8, "little") for packet in kept))
             for mask, kept in ((0, [1 << 33, 3 << 33]), (1, [4 << 33]))]  # fmt: skip
    assert join_samples(parts).packets.tolist() == [4 << 33]
    assert join_samples([]).packets.tolist() == []


@pytest.mark.parametrize(("shared", "is_found"), [(2, False), (3, True)])
def test_a_few_packets_that_two_short_captures_share_prove_it(shared: int, is_found: bool) -> None:
    def samples(first: int) -> Samples:
        told = b"".join(((first + n) * 2).to_bytes(8, "little") + n.to_bytes(8, "little") for n in range(10))
        return join_samples([(0, told)])

    found = find_places(["a", "b"], [samples(0), samples(10 - shared)])
    assert bool(found) == is_found
    assert found.find("b") == int(is_found)


def test_memory_for_samples_is_bounded() -> None:
    assert samples_of_each(10**5) * 10**5 * 16 <= 1 << 27
