"""``kwsniff slice``: what it writes is read back by hand, by kwsniff itself, and by tshark."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import run
from tests.cli.shown import tshark
from tests.traffic.files import Frame, Resolution, frames, option, pcap, pcapng, read_frames
from tests.traffic.scenes import pipelined, two_clients

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST_STEPS = CAPTURES / "first_steps" / "capture.pcap"
TLS = CAPTURES / "tls_1_3"


def sliced(tmp_path: Path, *arguments: str | Path, status: int = 0) -> Path:
    out = tmp_path / "slice.pcapng"
    assert run(["slice", *map(str, arguments), "-o", str(out)]) == status
    assert out.exists() == (status == 0)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    return out


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Type and body of each block of a little-endian pcapng."""
    found, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size % 4 == 0
        assert struct.unpack_from("<I", data, at + size - 4) == (size,)
        found.append((kind, data[at + 8 : at + size - 4]))
        at += size
    return found


def packets(path: Path) -> list[tuple[int, int, bytes, int, bytes]]:
    """Interface, ticks, bytes, length on the wire and options of each packet."""
    found = []
    for kind, body in blocks(path.read_bytes()):
        if kind == 6:
            number, high, low, size, length = struct.unpack_from("<IIIII", body)
            found.append(
                (number, high << 32 | low, body[20 : 20 + size], length, body[20 + size + -size % 4 :])
            )
    return found


def comments(options: bytes) -> list[str]:
    found, at = [], 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from("<HH", options, at)
        if code == 1:
            found.append(options[at + 4 : at + 4 + size].decode())
        at += 4 + size + -size % 4
    return found


def interfaces(path: Path) -> list[bytes]:
    return [body for kind, body in blocks(path.read_bytes()) if kind == 1]


def test_a_call_is_its_two_packets_as_they_were(tmp_path: Path) -> None:
    """Frames 23 and 24 of the recording, by its file."""
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    found = packets(sliced(tmp_path, FIRST_STEPS, "--call", "23000"))
    assert [(data, length, ticks) for _, ticks, data, length, _ in found] == [
        (row.data, row.length, row.time_ns // 1000) for row in rows[22:24]
    ]
    assert [comments(options) for *_, options in found] == [
        ["call 23000: Produce v10 request, correlation id 3"],
        ["call 23000: Produce v10 response, correlation id 3, answered in 3.52 ms"],
    ]


@pytest.mark.parametrize(
    "filters",
    [["--error", "any"], ["--client", "billing"], ["--topic", "ordres"], ["--api", "Fetch"],
     ["--connection", "11"], ["--where", "latency >= 5ms"], ["--where", "group_id = billing"],
     ["--since", "+1s", "--until", "+2s", "--api", "Metadata"]],
    ids=" ".join,
)  # fmt: skip
def test_filters_choose_the_calls_that_show_shows(
    filters: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sliced(tmp_path, FIRST_STEPS, *filters)
    capsys.readouterr()
    assert run(["show", str(FIRST_STEPS), *filters]) == 0
    shown = re.findall(r"^call (\d+):", capsys.readouterr().out, re.M)
    named = [
        re.findall(r"call (\d+): ", comment) for *_, options in packets(path) for comment in comments(options)
    ]
    assert {number for each in named for number in each} == set(shown) != set()


def test_all_packets_of_a_time(tmp_path: Path) -> None:
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    since = rows[0].time_ns + 10**9
    found = packets(sliced(tmp_path, FIRST_STEPS, "--since", "+1s", "--until", "+2s"))
    assert [data for _, _, data, _, _ in found] == [
        row.data for row in rows if since <= row.time_ns < since + 10**9
    ]


def test_surroundings_and_handshakes_on_demand(tmp_path: Path) -> None:
    """Connection 11 of the recording goes from 127.0.0.1:53814; its first three packets are the handshake."""
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    port = struct.pack(">H", 53814)
    own = [row for row in rows if port in (row.data[34:36], row.data[36:38])]
    assert len(own) > 10

    def taken(*options: str) -> list[bytes]:
        return [
            data for _, _, data, _, _ in packets(sliced(tmp_path, FIRST_STEPS, "--call", "23000", *options))
        ]

    both = [row.data for row in rows[22:24]]
    assert taken("--context", "all") == [row.data for row in own]
    assert taken("--handshake") == [row.data for row in own[:3]] + both
    near = [
        row.data
        for row in own
        if rows[22].time_ns - 50_000_000 <= row.time_ns <= rows[23].time_ns + 50_000_000
    ]
    assert taken("--context", "50ms") == near
    assert len(both) < len(near) < len(own)


def test_compressed_and_rotated_captures_of_several_kinds(tmp_path: Path) -> None:
    """Times of every unit stay exact; the same packets come out, whatever held them."""
    rows = frames(pipelined(4, 30, 300).packets())
    (tmp_path / "in").mkdir()
    ns = Resolution(9)
    parts = [
        pcap(rows[:10], big=True, nanoseconds=True),
        gzip.compress(pcapng(rows[10:20], big=True, resolutions=[ns, Resolution(6)], noise=True)),
        pcapng(rows[20:30], resolutions=[Resolution(0x80 | 20, offset_s=3600)]),
        pcap(rows[30:]),
    ]
    for number, data in enumerate(parts):
        (tmp_path / "in" / f"x{number}").write_bytes(data)
    path = sliced(tmp_path, tmp_path / "in", "--api", "produce", "--context", "all")
    found = packets(path)
    assert [data for _, _, data, _, _ in found] == [row.data for row in rows]
    units = [10**9, 10**9, 10**6, 2**20, 10**6]
    offsets = [0, 0, 0, 3600, 0]
    assert len(interfaces(path)) == 5
    for (number, ticks, *_), row in zip(found, rows, strict=True):
        exact = (row.time_ns - offsets[number] * 10**9) * units[number] // 10**9
        assert ticks == exact
    whole = kwsniff.analyze(path).api_calls
    assert whole.num_rows == kwsniff.analyze(tmp_path / "in").api_calls.num_rows == 30
    names = ["latency_ns", "status", "request_bytes", "response_bytes", "request_time"]
    assert whole.select(names).equals(kwsniff.analyze(tmp_path / "in").api_calls.select(names))


def test_options_and_several_link_types_are_kept(tmp_path: Path) -> None:
    rows = frames(two_clients().packets())
    raw = [Frame(row.time_ns, row.data[14:], row.length - 14) for row in rows]
    (tmp_path / "a.pcap").write_bytes(pcap(rows))
    (tmp_path / "b.pcap").write_bytes(pcap(raw, 101, snaplen=4096))
    path = sliced(tmp_path, tmp_path / "a.pcap", tmp_path / "b.pcap", "--since", "2000-01-01")
    assert [struct.unpack_from("<HHI", body) for body in interfaces(path)] == [
        (1, 0, 262_144),
        (101, 0, 4096),
    ]
    data = pcapng(rows, resolutions=[Resolution(9)])
    assert option("<", 2, b"eth0") in data
    (tmp_path / "c.pcapng").write_bytes(data)
    (body,) = interfaces(sliced(tmp_path, tmp_path / "c.pcapng", "--api", "metadata"))
    assert option("<", 2, b"eth0") + option("<", 9, b"\x09") in body


@pytest.mark.slow
def test_the_proof_of_a_finding(tmp_path: Path) -> None:
    incident = CAPTURES / "incidents" / "message_too_large" / "broker.pcap"
    findings = kwsniff.analyze(incident).findings.to_pylist()
    (numbers,) = (each["call_ids"] for each in findings if each["finding"] == "message_too_large")
    path = sliced(tmp_path, incident, "--finding", "message_too_large")
    named = " ".join(comment for *_, options in packets(path) for comment in comments(options))
    assert {
        int(number) for number in re.findall(r"call (\d+): [^;]+; finding message_too_large", named)
    } == set(numbers)
    refused = CAPTURES / "incidents" / "connection_refused" / "broker.pcap"
    findings = kwsniff.analyze(refused).findings.to_pylist()
    (proof,) = (each["frames"] for each in findings if each["finding"] == "connection_refused")
    _, rows = read_frames(refused.read_bytes())
    found = packets(sliced(tmp_path, refused, "--finding", "connection_refused"))
    assert [data for _, _, data, _, _ in found] == [rows[frame - 1].data for frame in sorted(proof)]
    assert [comments(options) for *_, options in found] == [["finding connection_refused"]] * len(proof)


def test_what_fits_nothing_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sliced(tmp_path, FIRST_STEPS, "--call", "99", status=1)
    assert "no match" in capsys.readouterr().err
    sliced(tmp_path, FIRST_STEPS, "--since", "2030-01-01", status=1)
    assert "no packets" in capsys.readouterr().err
    kept = tmp_path / "slice.pcapng"
    kept.write_bytes(b"before")
    assert run(["slice", str(FIRST_STEPS), "--call", "99", "-o", str(kept)]) == 1
    assert kept.read_bytes() == b"before"


@pytest.mark.parametrize(
    "arguments",
    [
        [str(FIRST_STEPS)],
        [str(FIRST_STEPS), "--call", "1", "--context", "5"],
        [str(FIRST_STEPS), "--finding", "no_such"],
        ["no such file", "--call", "1"],
        [str(FIRST_STEPS), "--status", "asleep"],
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sliced(tmp_path, *arguments, status=2)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_capture_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcap"
    shutil.copy(FIRST_STEPS, path)
    assert run(["slice", str(path), "--error", "any", "-o", str(path)]) == 2
    assert path.read_bytes() == FIRST_STEPS.read_bytes()
    assert "is an input capture; choose another output file" in capsys.readouterr().err


@pytest.mark.parametrize("end", [-1, -9, -200, 700])
def test_a_capture_that_breaks_off_gives_what_it_has(end: int, tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(FIRST_STEPS.read_bytes()[:end])
    found = packets(sliced(tmp_path, path, "--since", "2026-11-20"))
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    assert [data for _, _, data, _, _ in found] == [row.data for row in rows][: len(found)]
    assert len(found) > 3


@pytest.mark.parametrize("seed", range(12))
def test_hostile_bytes_never_raise(seed: int, tmp_path: Path) -> None:
    """Lengths, interface numbers and options lie; what is written is a file of whole blocks."""
    chance = random.Random(seed)
    rows = frames(two_clients().packets())
    data = bytearray(
        pcapng(
            rows,
            big=bool(seed & 1),
            resolutions=[Resolution(9), Resolution()],
            noise=True,
            simple=seed % 5 == 4,
        )
        if seed % 3
        else pcap(rows)
    )
    for _ in range(chance.choice([3, 40])):
        data[chance.randrange(28, len(data))] = chance.choice([0, 1, 127, 255, chance.randrange(256)])
    path, out = tmp_path / "x", tmp_path / "slice.pcapng"
    path.write_bytes(data)
    assert run(["slice", str(path), "--until", "9999-01-01", "-o", str(out)]) in (0, 1, 2)
    assert not out.exists() or blocks(out.read_bytes())[0][0] == 0x0A0D0D0A


def test_wireshark_reads_it_with_times_and_comments(tmp_path: Path) -> None:
    path = sliced(tmp_path, FIRST_STEPS, "--error", "any", "--handshake")
    said = tshark(path, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment")
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    times = {f"{row.time_ns // 10**9}.{row.time_ns % 10**9:09}" for row in rows}
    assert len(said) == len(packets(path))
    assert {line.split("\t")[0] for line in said} <= times
    assert sum("call 23000: Produce v10" in line for line in said) == 2


def test_secrets_of_the_connection_alone_go_along(tmp_path: Path) -> None:
    keys = TLS / "keys.log"
    tshark(TLS / "capture.pcap", "-c", "1")  # skips where it is not installed
    calls = kwsniff.analyze(TLS / "capture.pcap", tls_keylog=keys).api_calls.to_pylist()
    chosen = next(row for row in calls if row["api_name"] == "Produce")
    arguments = ["--tls-keylog", keys, "--call", chosen["call_id"]]
    path = sliced(tmp_path, TLS / "capture.pcap", *map(str, arguments), "--secrets")
    ((_, secrets),) = [(kind, body) for kind, body in blocks(path.read_bytes()) if kind == 10]
    lines = secrets[8:].rstrip(b"\0").splitlines()
    everything = keys.read_bytes().splitlines()
    assert 0 < len(lines) < len(everything)
    assert len({line.split()[1] for line in lines}) == 1
    assert set(lines) <= set(everything)
    again = kwsniff.analyze(path).api_calls.to_pylist()
    names = ("api_name", "correlation_id", "latency_ns", "request_bytes")
    assert tuple(chosen[name] for name in names) in {tuple(row[name] for name in names) for row in again}
    plain = sliced(tmp_path, TLS / "capture.pcap", *map(str, arguments))
    assert not [kind for kind, _ in blocks(plain.read_bytes()) if kind == 10]


def test_json_tells_the_comments_by_the_frames_of_the_captures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = sliced(tmp_path, FIRST_STEPS, "--error", "any", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["output"]) == (1, str(out))
    written = packets(out)
    assert told["packets"] == len(written)
    # Packets in the file are in the order of the capture.
    assert [each["comments"] for each in told["comments"]] == [
        found for packet in written if (found := comments(packet[4]))
    ]
    rows = [row for row in kwsniff.analyze(FIRST_STEPS).api_calls.to_pylist() if row["error_count"]]
    assert told["calls"] == len(rows)
    frames_ = sorted(row[side] for row in rows for side in ("request_frame", "response_frame"))
    assert [(each["capture"], each["frame"]) for each in told["comments"]] == [
        (str(FIRST_STEPS), frame) for frame in frames_
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture, small = tmp_path / "long.pcap", tmp_path / "small"
    capture.write_bytes(pcap(frames(pipelined(calls=200).packets())))
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    try:
        assert run(["slice", str(capture), "--api", "produce", "-o", f"{small}/some.pcapng"]) == 2
        assert "cannot write: No space left on device\n" in capsys.readouterr().err
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
