"""A part of a capture by time: as if the capture held nothing else, with the frame numbers of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import kwsniff
from kwsniff.sources.times import Given
from tests.core.test_datagrams import pieces
from tests.pipeline.buckets import Times, bucketed, every, whole
from tests.traffic import damage, files, scenes
from tests.traffic.files import Frame
from tests.traffic.tcp import Packet

CAPTURE = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
Writer = Callable[[Sequence[Frame]], bytes]
LLDP = bytes(12) + b"\x88\xcc" + bytes(46)


def frames(packets: Sequence[Packet]) -> list[Frame]:
    return files.frames(packets)


def fragmented() -> list[Frame]:
    rows = frames(scenes.two_clients().packets())
    for number, piece in enumerate([*pieces(ident=1), *pieces(ident=2)[:2]]):
        data = rows[0].data[:12] + b"\x08\x00" + piece
        rows.insert(3 + 4 * number, Frame(rows[3 + 4 * number].time_ns, data, len(data)))
    return rows


SCENES = {
    "two_clients": frames(scenes.two_clients().packets()),
    "pipelined": frames(damage.drop_share(scenes.pipelined(4, 30, 300).packets(), 0.05, 5)),
    "fragments": fragmented(),
}


def moments(rows: Sequence[Frame]) -> list[Times]:
    """Bounds from inside the rows; the first two enclose a third of them, and the last nothing."""
    times = sorted(row.time_ns // 1000 * 1000 for row in rows)
    third, two = times[len(times) // 3], times[2 * len(times) // 3]
    return [(third, two), (None, third), (two, None), (third, third + 1), (times[-1] + 1000, None)]


def blanked(rows: Sequence[Frame], times: Times) -> list[Frame]:
    """The rows with what lies outside in the place of something that no table speaks of."""
    since, until = times
    return [
        row
        if (since is None or row.time_ns // 1000 * 1000 >= since)
        and (until is None or row.time_ns // 1000 * 1000 < until)
        else replace(row, data=LLDP, length=len(LLDP))
        for row in rows
    ]


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("write", [files.pcap, files.pcapng])
def test_rows_are_those_of_a_capture_that_has_nothing_else(name: str, number: int, write: Writer) -> None:
    rows = SCENES[name]
    times = moments(rows)[number]
    other = blanked(rows, times)
    expected = whole([write(other)])
    found = whole([write(rows)], times)
    assert found.rows == expected.rows
    assert found.bins == expected.bins
    (facts,) = found.facts
    num_other = sum(row.data == LLDP for row in other)
    assert 0 < num_other == facts["packets_other_time"] == expected.facts[0]["packets_not_ip"]
    assert facts["packets"] == len(rows)
    assert facts["tcp_payload_bytes"] == expected.facts[0]["tcp_payload_bytes"] == found.bins[0].total()


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("write", [files.pcap, files.pcapng])
def test_buckets_add_up_to_the_whole(name: str, number: int, write: Writer) -> None:
    rows = SCENES[name]
    times, data = moments(rows)[number], [write(rows)]
    expected = whole(data, times)
    for num_buckets, cut in ((1, every(1 << 30)), (3, every(3001)), (7, every(100)), (2, None)):
        assert bucketed(data, num_buckets, cut, times=times) == expected


def test_packets_without_a_time_are_of_no_time() -> None:
    rows = SCENES["two_clients"]
    data = files.pcapng(rows, simple=True)
    (facts,) = whole([data], (1, None)).facts
    assert facts["packets_other_time"] == facts["packets"] == len(rows)
    assert whole([data]).facts[0]["packets_other_time"] == 0


def test_a_state_keeps_the_bounds() -> None:
    from kwsniff.analyzers import resume_analyzer, start_analyzer
    from tests.pipeline.buckets import CATALOG

    rows = SCENES["two_clients"]
    times = moments(rows)[0]
    analyzer = start_analyzer(CATALOG)
    analyzer.bound(*times)
    analyzer = resume_analyzer(CATALOG, analyzer.save())
    analyzer.open_capture("0.pcap")
    data = files.pcap(rows)
    analyzer.feed(data[:999])
    analyzer = resume_analyzer(CATALOG, analyzer.save())
    analyzer.feed(data[999:])
    assert (
        analyzer.close_capture()["packets_other_time"] == whole([data], times).facts[0]["packets_other_time"]
    )


def test_python_takes_texts_and_times() -> None:
    """The same second, said in different ways."""
    first = datetime(2026, 11, 20, 19, 36, 5, 357773, UTC)
    told: list[tuple[Given, Given]] = [
        ("+1s", "+2s"),
        (timedelta(seconds=1), timedelta(seconds=2)),
        (first + timedelta(seconds=1), (first + timedelta(seconds=2)).replace(tzinfo=None)),
        ("2026-11-20T19:36:06.357773", "19:36:07.357773"),
    ]
    tables = [kwsniff.analyze(CAPTURE, since=since, until=until) for since, until in told]
    frames = tables[0].api_calls["request_frame"].to_pylist()
    inside = [
        frame
        for frame, time in zip(
            *map(kwsniff.analyze(CAPTURE).api_calls.column, ("request_frame", "request_time")), strict=True
        )
        if timedelta(seconds=1) <= time.as_py() - first < timedelta(seconds=2)
    ]
    assert frames == [frame.as_py() for frame in inside]
    assert len(frames) > 5
    for each in tables[1:]:
        assert each.api_calls["request_frame"].to_pylist() == frames
        assert each.captures.drop_columns(["run_id"]).equals(tables[0].captures.drop_columns(["run_id"]))


def test_rotated_captures_count_from_the_first_packet_of_all(tmp_path: Path) -> None:
    rows = SCENES["pipelined"]
    begin = rows[0].time_ns // 1000 * 1000
    middle = (rows[len(rows) // 2].time_ns - begin) // 1000
    (tmp_path / "b.pcap").write_bytes(files.pcap(rows[:90]))
    (tmp_path / "a.pcap").write_bytes(files.pcapng(rows[90:]))
    (tmp_path / "one.pcap").write_bytes(files.pcap(rows))
    parts = kwsniff.analyze([tmp_path / "a.pcap", tmp_path / "b.pcap"], since=f"+{middle}us")
    one = kwsniff.analyze(tmp_path / "one.pcap", since=f"+{middle}us")
    assert parts.summary["since"] == one.summary["since"]
    names = ["api_key", "request_time", "latency_ns", "status"]
    assert 0 < one.api_calls.num_rows < kwsniff.analyze(tmp_path / "one.pcap").api_calls.num_rows
    assert parts.api_calls.select(names).equals(one.api_calls.select(names))
