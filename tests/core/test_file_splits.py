"""Where records begin, seen from anywhere; walks that meet; lists that never lead out of a file."""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Callable
from itertools import pairwise

import pytest

from kwsniff.analyzers import start_analyzer
from kwsniff.core.capture import file_splits
from kwsniff.core.capture.partitioner import Router
from kwsniff.errors import CaptureError, UsageError
from tests.core.guard import flush_against_guard_page
from tests.hostile import mutate
from tests.pipeline.buckets import CATALOG, every, scanned, walk
from tests.traffic import files, scenes
from tests.traffic.messages import produce
from tests.traffic.records import batch

FRAMES = files.frames(scenes.two_clients().packets())
FORMATS: dict[str, Callable[[], bytes]] = {
    "pcap": lambda: files.pcap(FRAMES),
    "pcap_big": lambda: files.pcap(FRAMES, big=True, nanoseconds=True),
    "pcap_short": lambda: files.pcap(files.frames(scenes.two_clients().packets(), snaplen=96), snaplen=96),
    "pcapng": lambda: files.pcapng(FRAMES),
    "pcapng_big": lambda: files.pcapng(FRAMES, big=True),
}


def boundaries(data: bytes) -> list[int]:
    """Where every record begins, by the formats' own lengths, and the end of the capture."""
    big = data[:4] in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d") or data[8:12] == b"\x1a\x2b\x3c\x4d"
    order = ">" if big else "<"
    blocks = data[:4] == b"\x0a\x0d\x0d\x0a"
    ends = [0 if blocks else 24]
    while ends[-1] < len(data):
        at = ends[-1] + (4 if blocks else 8)
        length = struct.unpack(order + "I", data[at : at + 4])[0]
        ends.append(ends[-1] + length + (0 if blocks else 16))
    assert ends[-1] == len(data)
    return [end for end in ends if end >= len(file_splits.read_head(data))]


@pytest.mark.parametrize("name", FORMATS)
def test_the_head_is_what_stands_before_the_first_packet(name: str) -> None:
    data = FORMATS[name]()
    head = file_splits.read_head(data)
    assert data.startswith(head)
    first = data[len(head) :]
    if name.startswith("pcapng"):
        assert int.from_bytes(first[:4], "big" if name.endswith("big") else "little") == 6
    else:
        assert len(head) == 24
    assert len(boundaries(data)) == len(FRAMES) + 1


@pytest.mark.parametrize("name", FORMATS)
def test_records_are_found_from_every_offset(name: str) -> None:
    data = FORMATS[name]()
    head = file_splits.read_head(data)
    ends = boundaries(data)
    for offset in range(len(data) + 1):
        following = min((end for end in ends if end >= offset), default=len(data))
        found = file_splits.find_record(head, data, offset)
        assert found == (following if following < len(data) else None), offset


@pytest.mark.parametrize("name", FORMATS)
def test_walks_from_every_boundary_meet(name: str) -> None:
    data = FORMATS[name]()
    head = file_splits.read_head(data)
    ends = boundaries(data)
    whole = file_splits.scan(head, data, 0, len(data), 3)
    assert (whole.begin, whole.end, whole.packets, whole.stop) == (len(head), len(data), len(FRAMES), None)
    single = [file_splits.scan(head, data, begin, end, 3) for begin, end in pairwise(ends)]
    assert [one.packets for one in single] == [1] * len(FRAMES)
    assert file_splits.meet(head, random.Random(1).sample(single, len(single))) == (single, None)
    for cut in ends[1:-1]:
        two = [file_splits.scan(head, data, begin, end, 3) for begin, end in ((0, cut - 1), (cut, len(data)))]
        assert file_splits.meet(head, two) == (two, None)
        for name_ in whole.counts:
            assert sum(one.counts[name_] for one in two) == whole.counts[name_]


def test_a_boundary_that_is_none_is_found_out_and_walked_over() -> None:
    data = FORMATS["pcap"]()
    ends = boundaries(data)
    wrong = ends[5] + 3
    _, walked, repeated = scanned(data, 2, lambda head, data: [len(head), wrong, ends[9], len(data)])
    scans = [one.scan for one in walked]
    assert repeated >= 1
    assert [one.begin for one in scans] == [24, ends[6], ends[9]]
    assert scans[-1].end == len(data)
    assert sum(one.packets for one in scans) == len(FRAMES)


@pytest.mark.parametrize("name", FORMATS)
def test_a_piece_of_the_file_tells_the_same_boundaries(name: str) -> None:
    data = FORMATS[name]()
    head = file_splits.read_head(data)
    order = "big" if "big" in name else "little"
    first = int.from_bytes(data[len(head) : len(head) + 4], order)
    for offset in range(len(head) + 1, len(data), 7):
        found = file_splits.find_record(head, data[offset:], offset, at=offset, earliest=first)
        assert found == file_splits.find_record(head, data, offset), offset


def inner_capture(size: int) -> bytes:
    """A capture as the payload of messages, in few large packets: its records look as good as others."""
    inside = files.pcap(FRAMES * (size // len(files.pcap(FRAMES))))
    calls = [produce(7, n, {"t": {0: batch([inside])}}) for n in range(1, 4)]
    return files.pcap(files.frames(scenes.one_by_one(calls, mss=60_000).packets()))


def test_a_capture_inside_a_capture_does_not_mislead() -> None:
    data = inner_capture(90_000)
    head = file_splits.read_head(data)
    ends = boundaries(data)
    inside = [at for at in range(0, len(data), 997) if at > ends[4]]
    assert len(inside) > 100
    for offset in inside:
        found = file_splits.find_record(head, data, offset)
        assert found is None or found in ends, offset
    for size in (5_000, 20_011, 70_000):
        _, walked, _ = scanned(data, 2, every(size))
        scans = [one.scan for one in walked]
        assert scans[-1].end == len(data)
        assert sum(one.packets for one in scans) == len(ends) - 1


def crafted() -> tuple[bytes, int]:
    """A capture one of whose packets holds a record that leads to the next packet's; where that record is."""
    rows = [files.Frame(1_700_000_000_000_000_000 + n, bytes(90), 90) for n in range(40)]
    fake = struct.pack("<IIII", 1_700_000_000, 5, 40, 40) + bytes(40)
    rows[20] = files.Frame(rows[20].time_ns, bytes(90 - len(fake)) + fake, 90)
    return files.pcap(rows), 24 + 20 * 106 + 16 + 90 - len(fake)


def test_a_record_made_to_mislead_costs_a_second_walk_and_nothing_else() -> None:
    data, fake = crafted()
    head = file_splits.read_head(data)
    assert file_splits.find_record(head, data, fake) == fake, "nothing that stands behind it contradicts it"
    _, walked, repeated = scanned(data, 2, lambda head, data: [len(head), fake, len(data)])
    scans = [one.scan for one in walked]
    assert repeated == 1
    assert [(one.begin, one.end) for one in scans][-1][1] == len(data)
    assert sum(one.packets for one in scans) == 40


@pytest.mark.parametrize("big", [False, True])
def test_interfaces_in_the_middle_are_known_behind_them(big: bool) -> None:
    one, two = files.pcapng(FRAMES[:20]), files.pcapng(FRAMES[20:], big=big, snaplen=9000)
    data = one + two
    _, walked, repeated = scanned(data, 2, every(700))
    scans = [one.scan for one in walked]
    assert big or repeated > 0, "splits of the second section were scanned with the first one's interfaces"
    assert sum(found.packets for found in scans) == len(FRAMES)
    assert sum(found.counts["packets_tcp"] for found in scans) == len(FRAMES)
    assert next(found.next_head for found in scans if found.next_head) == file_splits.read_head(two)


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_truncated_and_damaged_captures_end_where_they_do(name: str) -> None:
    data = FORMATS[name]()
    ends = boundaries(data)
    cut = data[: ends[-2] + 9]
    _, walked, _ = scanned(cut, 2, every(400))
    scans = [one.scan for one in walked]
    assert (scans[-1].stop, scans[-1].end) == ("truncated", ends[-2])
    damaged = data[: ends[7]] + b"\xff" * 24 + data[ends[7] + 24 :]
    _, walked, _ = scanned(damaged, 2, every(400))
    scans = [one.scan for one in walked]
    assert (scans[-1].stop, scans[-1].end) == ("damaged", ends[7])
    assert sum(one.packets for one in scans) == 7


def test_scans_travel_between_processes() -> None:
    data = FORMATS["pcap"]()
    one = file_splits.scan(file_splits.read_head(data), data, 0, len(data), 2)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301


@pytest.mark.parametrize("data", [b"", b"\xd4\xc3\xb2", b"\xd4\xc3\xb2\xa1\x02"])
def test_a_capture_too_short_has_no_head(data: bytes) -> None:
    assert file_splits.read_head(data) == b""


def test_bad_usage_gets_a_line() -> None:
    data = FORMATS["pcap"]()
    head = file_splits.read_head(data)
    with pytest.raises(CaptureError, match="not a pcap"):
        file_splits.read_head(b"GIF89a, no capture")
    with pytest.raises(UsageError, match="head of a capture"):
        file_splits.scan(b"", data, 24, 90, 2)
    with pytest.raises(UsageError, match="not inside"):
        file_splits.scan(head, data, 0, len(data) + 1, 2)
    with pytest.raises(UsageError, match="buckets"):
        Router(65537)
    with pytest.raises(UsageError, match="bucket 2 of 2"):
        start_analyzer(CATALOG, bucket=(2, 2))
    analyzer = start_analyzer(CATALOG, bucket=(0, 1))
    analyzer.open_capture("x")
    analyzer.feed(head)
    kept = routed(head, data)
    with pytest.raises(UsageError, match="not runs"):
        analyzer.begin_runs(b"\xff", kept[-1], frames_before=0)
    analyzer.begin_runs(*kept, frames_before=0)
    assert analyzer.feed_runs(100)
    with pytest.raises(UsageError, match="runs are left"):
        analyzer.close_capture()
    with pytest.raises(UsageError, match="to their end"):
        analyzer.save()


def routed(head: bytes, data: bytes) -> tuple[bytes, ...]:
    """What is kept of a capture for one bucket, and for all."""
    (part,) = walk(head, data, 0, len(data), 1).parts
    return part.kept


def test_a_router_says_what_it_was_not_asked_in_order() -> None:
    data = FORMATS["pcap"]()
    head = file_splits.read_head(data)
    router = Router(2)
    with pytest.raises(UsageError, match="no capture is open"):
        router.feed(data)
    router.open(head)
    with pytest.raises(UsageError, match="open already"):
        router.open(head)
    assert router.feed(data[len(head) :])
    assert (router.packets, router.waiting > len(data) * 0.9) == (len(FRAMES), True)
    with pytest.raises(UsageError, match="cut before"):
        router.take(bytes)
    assert router.close().packets == len(FRAMES)
    with pytest.raises(UsageError, match="was not cut"):
        router.open(head)
    packets, _ = router.cut()
    router.take(bytes)
    assert (packets, router.waiting) == (len(FRAMES), 0)


def test_what_was_kept_and_is_damaged_is_noticed() -> None:
    data = FORMATS["pcap"]()
    head = file_splits.read_head(data)
    own, shared = routed(head, data)
    longer = own[:4] + struct.pack("<II", len(FRAMES) + 1, len(own) - 12) + own[12:]
    for wrong in (longer, own[:-1], own[:7], bytes(12)):
        analyzer = start_analyzer(CATALOG, bucket=(0, 1))
        analyzer.open_capture("x")
        analyzer.feed(head)
        with pytest.raises((CaptureError, UsageError), match=r"is not what it was|not runs"):
            analyzer.begin_runs(wrong, shared, frames_before=0)
            while analyzer.feed_runs():
                pass
    with pytest.raises(UsageError, match="not runs"):
        analyzer.begin_runs(own, shared[:-1], frames_before=0)
    for place in (32, 24, 16):  # from the end: the part's first and last time, its last segment's
        far = shared[:-place] + struct.pack("<q", 5 - 2**63) + shared[len(shared) - place + 8 :]
        with pytest.raises(UsageError, match="not runs"):
            analyzer.begin_runs(own, far, frames_before=0)


def test_nothing_reads_beyond_a_capture() -> None:
    """Captures and lists that end where memory ends, mutated: a byte too far would end the process."""
    dice = random.Random(7)
    for number in range(300):
        data = FORMATS[dice.choice(list(FORMATS))]()
        data = bytes(mutate.damaged_bytes(dice, data)) if number % 3 else data[: dice.randrange(len(data))]
        with flush_against_guard_page(data) as held:
            try:
                head = file_splits.read_head(held)
            except CaptureError:
                continue
            if not head:
                continue
            for _ in range(5):
                file_splits.find_record(head, held, dice.randrange(len(data) + 1))
            _, walked, _ = scanned(held, 3, every(300))  # type: ignore[arg-type]
            parts = [part for one in walked for part in one.parts]
            analyzer = start_analyzer(CATALOG, bucket=(1, 3))
            analyzer.open_capture("x")
            analyzer.feed(head)
            try:
                for part in parts:
                    damaged = bytes(mutate.damaged_bytes(dice, part.kept[1]))
                    common = bytes(mutate.damaged_bytes(dice, part.kept[-1]))
                    with flush_against_guard_page(damaged) as own, flush_against_guard_page(common) as shared:
                        analyzer.begin_runs(own, shared, frames_before=0)
                        while analyzer.feed_runs(97):
                            pass
            except (CaptureError, UsageError):
                del analyzer
