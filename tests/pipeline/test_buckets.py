"""Every split and every number of buckets gives the rows of one whole analysis, ids and frames included."""

from __future__ import annotations

import errno
import os
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwsniff.analyzers import resume_analyzer, start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.capture.partitioner import Router
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.errors import CaptureError, UsageError
from kwsniff.tables.build import Builder
from tests.core.test_datagrams import pieces
from tests.core.test_file_splits import boundaries, inner_capture
from tests.perf import loads
from tests.pipeline.buckets import (
    CATALOG,
    Part,
    bucketed,
    every,
    feed_parts,
    frozen,
    on_disk,
    scanned,
    whole,
)
from tests.pipeline.removal import selective_capture
from tests.pipeline.test_damage import long_scene
from tests.traffic import damage, files, scenes
from tests.traffic.files import Frame
from tests.traffic.tcp import Packet

RECORDED = (
    "first_steps",
    "aiokafka",
    "codecs",
    "group_classic",
    "transactions",
    "killed_broker",
    "snaplen_96",
)
CAPTURES = Path(__file__).parents[2] / "captures"


def written(packets: Sequence[Packet]) -> bytes:
    return files.pcap(files.frames(packets))


def rotated(packets: Sequence[Packet], parts: int) -> list[bytes]:
    step = -(-len(packets) // parts)
    return [written(packets[start : start + step]) for start in range(0, len(packets), step)]


def fragmented() -> bytes:
    """Datagrams in pieces between whole packets, and pieces that never become one."""
    rows = files.frames(scenes.two_clients().packets())
    for number, piece in enumerate([*pieces(ident=1), *pieces(ident=2)[:2]]):
        data = rows[0].data[:12] + b"\x08\x00" + piece
        rows.insert(3 + 4 * number, Frame(rows[3].time_ns, data, len(data)))
    return files.pcap(rows)


def captures() -> dict[str, Callable[[], list[bytes]]]:
    long = long_scene(calls=14, mss=200).packets()
    return {
        "two_clients": lambda: [written(scenes.two_clients().packets())],
        "pipelined": lambda: [written(scenes.pipelined(5, 12).packets())],
        "everything": lambda: [written(scenes.one_by_one(scenes.vocabulary(), mss=100).packets())],
        "answers_only": lambda: [written(damage.one_direction(long, from_client=False))],
        "lost": lambda: [written(damage.drop_share(long, 0.05, 3))],
        "lost_more": lambda: [written(damage.drop_share(scenes.pipelined(4, 30, 300).packets(), 0.2, 5))],
        "reordered": lambda: [written(damage.reorder(long, 5, 1))],
        "late": lambda: [written(damage.start_late(long, 40))],
        "truncated": lambda: [written(long)[:-7]],
        "damaged": lambda: [written(long)[:5000] + b"\xff" * 99 + written(long)[5099:]],
        "fragments": lambda: [fragmented()],
        "big_endian": lambda: [files.pcap(files.frames(long), big=True, nanoseconds=True)],
        "blocks": lambda: [files.pcapng(files.frames(long))],
        "blocks_big": lambda: [files.pcapng(files.frames(long), big=True)],
        "sections": lambda: [
            files.pcapng(files.frames(long[:50])) + files.pcapng(files.frames(long[50:]), big=True)
        ],
        "rotated": lambda: rotated(long, 5),
        "rotated_and_hurt": lambda: [one[:-3] for one in rotated(damage.drop_share(long, 0.05, 3), 4)],
        "mixed": lambda: [written(long[:70]), files.pcapng(files.frames(long[70:]))],
        "selective": lambda: [selective_capture(CAPTURES / "first_steps" / "capture.pcap")],
        "inner_capture": lambda: [inner_capture(20_000)],
        "empty": lambda: [files.pcap([]), written(scenes.two_clients().packets())],
    }


MADE = captures()


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("num_buckets", [1, 2, 3, 7])
def test_buckets_add_up_to_the_whole(name: str, num_buckets: int) -> None:
    data = MADE[name]()
    expected = whole(data)
    assert sum(expected.rows["connections"].values()) > 0
    for cut in (every(1 << 30), every(3001), every(100)):
        assert bucketed(data, num_buckets, cut) == expected
    assert bucketed(data, num_buckets, None) == expected


@pytest.mark.parametrize("name", ["two_clients", "fragments", "blocks"])
def test_a_split_may_begin_at_every_packet(name: str) -> None:
    data = MADE[name]()[0]
    expected = whole([data])
    ends = boundaries(data)
    assert bucketed([data], 2, lambda *_: ends) == expected
    for at in ends[1:-1:5]:
        assert bucketed([data], 2, lambda *_, at=at: [ends[0], at, ends[-1]], most=50) == expected  # type: ignore[misc]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", MADE)
def test_pieces_and_parts_of_any_size_change_nothing(name: str) -> None:
    data = MADE[name]()
    expected = whole(data)
    for piece, waiting, most in (
        (1, 1 << 30, 1 << 20),
        (7, 100, 3),
        (100, 1, 50),
        (1 << 20, 1, 1),
        (999, 2000, 77),
    ):
        assert bucketed(data, 3, every(4000), piece=piece, waiting=waiting, most=most) == expected


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", [*MADE, *RECORDED])
@pytest.mark.parametrize("least_named", [1, 1500, 20_000])
def test_packets_named_by_their_place_give_what_copies_give(name: str, least_named: int) -> None:
    if name in MADE:
        data = MADE[name]()
    else:
        data = [path.read_bytes() for path in (CAPTURES / name).glob("capture.pcap*")]
    expected = whole(data)
    for num_buckets, size, waiting in ((1, 1 << 30, 1 << 30), (3, 20_011, 5000)):
        found = bucketed(data, num_buckets, every(size), piece=997, waiting=waiting, least_named=least_named)
        assert found == expected


def test_what_is_named_is_not_kept_and_counts_as_waiting() -> None:
    data = written(scenes.two_clients().packets())
    head, (copied,), _ = scanned(data, 1, every(1 << 30))
    _, (named,), _ = scanned(data, 1, every(1 << 30), least_named=1)
    (run,) = (part.kept[0] for part in named.parts)
    skip, _, size, at = struct.unpack("<IIIQ", run)
    assert (skip, size, at) == (0, 1 << 31 | len(data) - len(head), len(head))
    assert data[at:] == copied.parts[0].kept[0][12:]
    router = Router(1)
    router.open(head, least_named=1)
    router.feed(data[len(head) :])
    assert router.waiting == len(data) - len(head) + len(run)


def test_what_is_named_and_is_not_there_is_noticed() -> None:
    data = written(scenes.two_clients().packets())
    head, (walked,), _ = scanned(data, 1, every(1 << 30), least_named=1)
    (part,) = walked.parts
    run, shared = part.kept

    def read(part: Part, capture: int) -> Analyzer:
        analyzer = start_analyzer(CATALOG)
        analyzer.open_capture("0.pcap")
        analyzer.feed(head)
        feed_parts(analyzer, [part], 0, capture=capture)
        return analyzer

    with on_disk(data) as capture:
        assert read(part, capture).bytes_named == len(data) - len(head)
        for length in range(1, len(run)):
            with pytest.raises((CaptureError, UsageError), match=r"is not what it was|these are not runs"):
                read(part._replace(kept=(run[:length], shared)), capture)
        for size, at in ((1 << 31 | 16, 1 << 63), (1 << 31, 24), ((1 << 32) - 1, (1 << 62) - 1)):
            with pytest.raises((CaptureError, UsageError), match=r"is not what it was|these are not runs"):
                read(part._replace(kept=(struct.pack("<IIIQ", 0, 1, size, at), shared)), capture)
    for shorter in (data[:-1], data[:200], b""):
        with on_disk(shorter) as capture, pytest.raises(CaptureError, match="is not what it was"):
            read(part, capture)
    with pytest.raises(CaptureError, match="is not what it was"):
        read(part, -1)
    with on_disk(data) as capture:
        closed = os.dup(capture)
        os.close(closed)
        with pytest.raises(CaptureError, match="cannot be read again") as told:
            read(part, closed)
    assert isinstance(told.value.__cause__, OSError)
    assert told.value.__cause__.errno == errno.EBADF


def test_windows_of_what_is_named_end_anywhere() -> None:
    """Records larger than a window, runs that go over its end, and gaps that are read with them."""
    data = written(
        [*loads.large(loads.Offsets(), (400_000, 700_000)).packets(), *scenes.pipelined(5, 400).packets()]
    )
    assert len(data) > 2 << 20
    expected = whole([data])
    for num_buckets, least_named in ((1, 1), (2, 1), (2, 70_000), (5, 1)):
        found = bucketed([data], num_buckets, every(1 << 30), most=1 << 24, least_named=least_named)
        assert found == expected


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_captures_by_buckets(name: str) -> None:
    (path,) = (CAPTURES / name).glob("capture.pcap*")
    data = path.read_bytes()
    expected = whole([data])
    for num_buckets, size in ((2, 50_000), (3, 1 << 30), (7, 9_973)):
        assert bucketed([data], num_buckets, every(size)) == expected


def test_connections_that_fall_silent_are_given_up_in_every_bucket() -> None:
    """Also at the end, by the time of a last packet that is another bucket's."""
    early = scenes.two_clients().packets()[:-6]
    last = early[-1].time_ns
    late = [
        replace(packet, time_ns=packet.time_ns + 400 * 10**9) for packet in scenes.pipelined(6, 4).packets()
    ]
    data = [written([*early, *late])]
    expected = whole(data, limits={"idle_seconds": 300})
    assert any("evicted" in row for row in expected.rows["connections"])
    assert late[0].time_ns > last
    for num_buckets in (2, 7):
        for cut in (every(500), None):
            assert bucketed(data, num_buckets, cut, limits={"idle_seconds": 300}) == expected


def test_every_connection_is_in_one_bucket() -> None:
    data = [written(scenes.pipelined(5, 12).packets())]
    connections = whole(data).rows["connections"]
    parts = [bucketed(data, num, every(800)).rows["connections"] for num in (1, 2, 5, 64)]
    assert parts == [connections] * 4
    assert set(connections.values()) == {1}


def test_a_bucket_is_saved_and_resumed_between_splits() -> None:
    data = written(damage.drop_share(scenes.pipelined(4, 30, 300).packets(), 0.2, 5))
    head, scans, _ = scanned(data, 2, every(1500))
    assert len(scans) > 4
    builder = Builder(CATALOG, ENUMS)
    rows: Counter[tuple[Any, ...]] = Counter()

    def take(analyzer: Analyzer) -> None:
        for table in COLUMNS:
            batch = builder.build(table, analyzer.drain(table))
            if table == "api_calls":
                rows.update(frozen(row, {}) for row in batch.to_pylist())

    for bucket in range(2):
        analyzer = start_analyzer(CATALOG, bucket=(bucket, 2))
        analyzer.open_capture("0.pcap")
        analyzer.feed(head)
        frames = 0
        for part in [part for one in scans for part in one.parts]:
            analyzer.begin_runs(part.kept[bucket], part.kept[-1], frames_before=frames)
            while analyzer.feed_runs():
                pass
            frames += part.packets
            take(analyzer)
            analyzer = resume_analyzer(CATALOG, analyzer.save())
        analyzer.close_capture()
        analyzer.finish()
        take(analyzer)
    assert rows == whole([data]).rows["api_calls"]
