"""Inputs that ask for too much: memory stays bounded, promises hold. Each in a process of its own."""

import pytest

from tests.hostile.alone import GIB, run_alone

_START = """
import gc, struct
from tests.hostile import seeds
from kwsniff.core.declared import COLUMNS
from tests.hostile.flood import *
from tests.traffic.messages import api_versions, metadata
from tests.traffic.wire import request_bytes, response_bytes, sized
MIB = 1 << 20

def begun(**limits):
    analyzer = seeds.analyzer(limits=limits)
    analyzer.open_capture("stress")
    analyzer.feed(HEADER)
    return analyzer

def ended(analyzer):
    facts = analyzer.close_capture()
    analyzer.finish()
    bins = analyzer.accounting(0)
    assert sum(bins.values()) == facts["tcp_payload_bytes"], bins
    return facts

def anomalies(analyzer):
    from kwsniff.core.declared import ENUMS
    codes = bytes(analyzer.drain("anomalies")[7][4])
    return [ENUMS["anomaly"][code] for code in codes]
"""


@pytest.mark.slow
def test_a_million_half_open_connections():
    run_alone(
        _START
        + """
analyzer = begun()
sizes, ended_early, evicted = [], 0, 0
for chunk in half_open(1_000_000):
    analyzer.feed(chunk)
    ended_early += analyzer.rows("connections")
    analyzer.drain("connections")
    evicted += anomalies(analyzer).count("connection_evicted")
    sizes.append(rss())
half = sizes[len(sizes) // 2]
assert sizes[-1] - half < 16 * MIB, (half, sizes[-1])
assert sizes[-1] - sizes[0] < 300 * MIB, (sizes[0], sizes[-1])
facts = ended(analyzer)
assert facts["packets_tcp"] == 1_000_000
assert ended_early + analyzer.rows("connections") == 1_000_000
# Beyond the limit on connections the one on memory closes some more.
assert evicted == ended_early
assert 950_000 <= evicted < 980_000, evicted
""",
        seconds=300,
        memory=GIB,
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFFFF, 1 << 29, (1 << 29) - 4, 100 << 20])
@pytest.mark.parametrize("back", [False, True])
def test_a_length_prefix_of_gigabytes(size: int, back: bool):
    """The claim costs nothing; what is kept of a frame that goes on and on is bounded."""
    run_alone(
        _START
        + f"""
size, back = {size}, {back}
analyzer = begun(frame_kept_bytes=4 * MIB, frame_kept_bytes_total=8 * MIB)
call = api_versions(3, 1)
large = struct.pack(">I", size) + metadata(9, 2, ["orders"]).request[4:]
analyzer.feed(handshake() + b"".join(stream(call.request)))
before = rss()
at = 0
if back:
    large = struct.pack(">Ii", size, 1) + bytes(100)
else:
    analyzer.feed(b"".join(stream(call.response, back=True)))
    at = len(call.request)
analyzer.feed(b"".join(stream(large, at, back=back)))
assert rss() - before < 4 * MIB
at += len(large)
for _ in range(40):
    analyzer.feed(b"".join(stream(bytes(MIB), at, back=back)))
    at += MIB
    assert rss() - before < 24 * MIB, rss() - before
facts = ended(analyzer)
assert facts["tcp_payload_bytes"] > 40 * MIB
""",
        memory=GIB,
    )


@pytest.mark.slow
def test_ten_million_empty_elements():
    """The engine's cells and an analyzer's frame of ten million empty strings end at their limits."""
    run_alone(
        _START
        + """
from kwsniff.core.wire.engine import STATUSES, run
from tests.core.programs import ARRAY, END, INT8, STRING, op, program
num = 10_000_000
code = program(op(ARRAY, a=4, b=1), op(INT8), op(END), op(END), op(END))
cells, status, _, _ = run(code, struct.pack(">i", num) + bytes(num), max_cells=4_000_000)
assert STATUSES[status] == "cells_limit" and len(cells) == 16 * 4_000_000
del cells
analyzer = begun()
analyzer.feed(handshake())
names = sized(request_bytes(3, 1, 1, "c", struct.pack(">i", num) + bytes(2 * num)))
for version, body in ((1, names), (1, names)):
    before = rss()
    for piece in stream(body):
        analyzer.feed(piece)
    assert rss() - before < 200 * MIB, rss() - before
facts = ended(analyzer)
assert analyzer.rows("api_calls") <= 2
""",
        seconds=300,
        memory=GIB,
    )


@pytest.mark.slow
def test_millions_of_error_codes_in_one_response():
    """Hits and rows of a response are bounded by its cells: a bounded multiple of memory."""
    run_alone(
        _START
        + """
num = 1_500_000
analyzer = begun()
group = b"\\0\\1g" + struct.pack(">i", 1) + b"\\0\\1m" + struct.pack(">qi", -1, 0)
request = sized(request_bytes(8, 2, 1, "c", group))
body = struct.pack(">i", 1) + b"\\0\\1t" + struct.pack(">i", num) + struct.pack(">ih", 7, 3) * num
analyzer.feed(handshake() + b"".join(stream(request)))
before = rss()
for piece in stream(sized(response_bytes(8, 2, 1, body)), back=True):
    analyzer.feed(piece)
grown = rss() - before
ended(analyzer)
rows = analyzer.rows("error_codes")
assert rows == 65_536, rows
assert anomalies(analyzer).count("call_facts_limit") == 1
assert grown < 700 * MIB, grown // MIB
""",
        seconds=300,
        memory=2 * GIB,
    )


def test_a_hundred_thousand_anomalies():
    """One per packet after the end: rows, in order, and the memory of rows."""
    run_alone(
        _START
        + """
analyzer = begun()
analyzer.feed(handshake() + packet(1, 50_000, flags=4, seq=1))
before = rss()
for number in range(100):
    late = [packet(1, 50_000, b"late", seq=1 + 4 * (1000 * number + each)) for each in range(1000)]
    analyzer.feed(b"".join(late))
assert rss() - before < 64 * MIB
ended(analyzer)
names = anomalies(analyzer)
assert names.count("data_after_end") == 100_000
""",
        memory=GIB,
    )


def test_frames_that_each_leave_a_spare_buffer_do_not_use_up_the_memory_for_frames():
    """Three thousand connections that once had a frame in two segments leave room for one more."""
    run_alone(
        _START
        + """
limits = dict(frame_kept_bytes_total=32 * MIB)
analyzer = begun(**limits)
body = sized(request_bytes(3, 1, 1, "c", struct.pack(">i", 1) + struct.pack(">h", 32_000) + b"t" * 32_000))
for client in range(1, 3001):
    analyzer.feed(handshake(client) + b"".join(stream(body, client=client, mss=30_000)))
ended(analyzer)
assert analyzer.rows("api_calls") == 3000, analyzer.rows("api_calls")
""",
        memory=GIB,
    )


@pytest.mark.slow
def test_analyzers_that_come_and_go_leave_no_memory():
    """Made, fed, finished or not, ended: two hundred times costs no more than a hundred."""
    run_alone(
        _START
        + """
import random
from kwsniff.errors import CaptureError
from tests.hostile import mutate
from tests.hostile.targets import LIMITS
found = [mutate.rows_of(packets) for packets in seeds.talks().values()]
files = [data for data in seeds.files().values() if len(data) < 20_000]

def round_(seed):
    dice = random.Random(seed)
    for number in range(40):
        analyzer = seeds.analyzer(limits=dice.choice(LIMITS))
        analyzer.open_capture("x")
        try:
            analyzer.feed(mutate.capture_of(mutate.damaged_rows(dice, dice.choice(found))))
            if number % 2:
                analyzer.close_capture()
                analyzer.open_capture("y")
                analyzer.feed(bytes(mutate.damaged_bytes(dice, dice.choice(files))))
                analyzer.close_capture()
                analyzer.finish()
                for table in ("api_calls", "anomalies"):
                    analyzer.drain(table)
        except CaptureError:
            pass

for seed in range(40):
    round_(seed % 20)
gc.collect()
before = rss()
for seed in range(160):
    round_(seed % 20)
gc.collect()
assert rss() - before < 3 * MIB, rss() - before
""",
        seconds=300,
    )


def test_a_search_that_finds_an_almost_response_at_every_twelfth_byte():
    """A two-megabyte segment reads at every place as a response breaking off in its last bytes only: trying
    them all is quadratic (minutes)."""
    run_alone(
        _START
        + """
import struct
cid, size = 0x00777777, 786_518     # the count that these words make is the largest that fits
analyzer = begun()
ask = struct.pack(">Ihhih", 11, 18, 0, cid, 1) + b"a"
lost = struct.pack(">I", 0xFFFFFFF0) + bytes(60)
almost = struct.pack(">III", size, cid, 2) * (2 * MIB // 12)
analyzer.feed(handshake() + b"".join([*stream(ask), *stream(lost, back=True)]))
for piece in stream(almost, len(lost), back=True, mss=2 * MIB):
    analyzer.feed(piece)
ended(analyzer)
assert "framing_lost" in anomalies(analyzer)
""",
        seconds=30,
    )


def test_a_size_in_two_pieces_that_memory_has_no_room_for_is_not_read_as_zero():
    """The frame is lost and the next one found; its body is not taken for frames."""
    run_alone(
        _START
        + """
analyzer = begun(frame_kept_bytes_total=1000)
whole = [metadata(1, number, ["orders"]).request for number in range(4)]
large = struct.pack(">I", 5000) + whole[0][4:] + bytes(960)
analyzer.feed(handshake(1) + b"".join(stream(large, client=1)))
pieces = [whole[1], whole[2][:2], whole[2][2:], whole[3]]
at = 0
analyzer.feed(handshake(2))
for piece in pieces:
    analyzer.feed(b"".join(stream(piece, at, client=2)))
    at += len(piece)
ended(analyzer)
number = [name for name, _, _ in COLUMNS["api_calls"]].index("correlation_id")
assert struct.unpack("2i", analyzer.drain("api_calls")[number][4]) == (1, 3)
"""
    )
