"""Opened TLS as plain TCP: the calls of the original with its keys, and neither names nor secrets."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.layout.catalog import load_catalog
from tests.anonymize.renaming import Rename, counted, encodings, opened, read_map, renaming
from tests.anonymize.test_packets import WRAPPINGS
from tests.anonymize.test_recordings import FIGURES, told
from tests.pipeline.compare import Row, analyzed, decoded
from tests.traffic.files import Frame, block, pcap, pcapng, read_frames

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDINGS = (
    "tls_1_2",
    "tls_1_3",
    "tls_go",
    "tls_key_update",
    "tls_mutual",
    "tls_sasl",
    "tls_suites",
)
# What docs/slice.md says: TLS itself, sizes that count its bytes, and round trips of packets with them alone.
OF_TLS = {
    "connections": re.compile(r"tls_.*|.*_bytes|.*_tls_records|.*round_trip_ns|.*_largest_acknowledged"),
    "latencies": re.compile("broker_round_trip_error_ns|retransmissions"),
}
OF_PACKETS = ("captures", "tcp_events", "stalls")
SECRET = re.compile(rb"[0-9a-f]{32,}")


def opening(folder: Path, capture: Path, keys: Path) -> tuple[Path, dict[str, str]]:
    """What the capture becomes, and the map."""
    new, key, names, log = (folder / name for name in ("public.pcapng", "site.key", "names.tsv", "keys.log"))
    key.write_text("one secret of more than sixteen bytes")
    shutil.copy(keys, log)
    log.chmod(0o600)
    words = ["anonymize", str(capture), "--open-tls", "--tls-keylog", str(log), "-o", str(new), "--force"]
    assert run([*words, "--key", str(key), "--map", str(names)]) == 0
    return new, read_map(names)


def of_recording(name: str, folder: Path) -> tuple[Path, Path, Path, dict[str, str]]:
    """Capture, keys, and what it became."""
    capture, keys = CAPTURES / name / "capture.pcap", CAPTURES / name / "keys.log"
    return capture, keys, *opening(folder, capture, keys)


def plain(rows: Sequence[Row], table: str) -> list[Row]:
    """Rows without what differs."""
    of_tls = OF_TLS.get(table)
    return [
        {
            name: value
            for name, value in row.items()
            if name != "capture" and not (of_tls and of_tls.fullmatch(name))
        }
        for row in rows
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_tables_and_findings_are_those_of_the_keys(recording: str, tmp_path: Path) -> None:
    capture, keys, new, names = of_recording(recording, tmp_path)
    rename = renaming(names)
    old, open_ = analyzed(capture, tls_keylog=str(keys)), analyzed(new)
    assert len(open_["api_calls"]) >= 10
    for table in set(old) - set(OF_PACKETS):
        assert counted(plain(old[table], table), rename) == counted(plain(open_[table], table)), table

    def figures(path: Path, by: Rename | None, **options: str) -> object:
        found = kwsniff.why(str(path), **options)
        rows = [{name: getattr(each, name) for name in FIGURES} for each in found]
        return counted([{**row, "subject": by(row["subject"]) if by else row["subject"]} for row in rows])

    assert figures(capture, rename, tls_keylog=str(keys)) == figures(new, None)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.sample(2)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_tshark_reads_what_it_decrypts_in_the_original(recording: str, tmp_path: Path) -> None:
    capture, keys, new, _ = of_recording(recording, tmp_path)
    fields = ("frame.time_epoch", "frame.len", "kafka.api_key", "kafka.correlation_id", "kafka.error")
    options = ["-o", f"tls.keylog_file:{keys}", "-d", "tcp.port==9092,tls", "-d", "tls.port==9092,kafka"]
    words = ["tshark", "-n", "-r", str(capture), "-T", "fields", *options]
    for each in fields:
        words += ["-e", each]
    before = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    after = told(new, fields)
    for old, open_ in zip(before, after, strict=True):
        # Of a record that it takes for a retransmission tshark shows nothing in the original.
        size = len(fields) if old.split("\t")[3] else 2
        assert old.split("\t")[:size] == open_.split("\t")[:size]
    assert sum(bool(line.split("\t")[3]) for line in before) >= 20
    bad = "tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.lost_segment || tls"
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    assert told(new, ("frame.number",), *checks, "-Y", bad) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_neither_names_nor_secrets_are_left(recording: str, tmp_path: Path) -> None:
    _, keys, new, names = of_recording(recording, tmp_path)
    public = load_catalog().names
    known = "\n".join((*public.words, *public.whole, *public.settings, *names.values()))
    data = opened(new.read_bytes())
    hidden = [name for name in names if len(name) > 5 and name not in known]
    assert hidden
    assert [name for name in hidden for code in encodings(name) if code in data] == []
    for secret in set(SECRET.findall(keys.read_bytes().lower())):
        assert secret not in data.lower()
        assert bytes.fromhex(secret.decode()[: len(secret) // 2 * 2])[:16] not in data


def with_secrets(recording: str) -> bytes:
    """The recording as pcapng with its keys inside (draft-ietf-opsawg-pcapng 4.7)."""
    keys = (CAPTURES / recording / "keys.log").read_bytes()
    _, rows = read_frames((CAPTURES / recording / "capture.pcap").read_bytes())
    whole = pcapng(rows)
    size = int.from_bytes(whole[4:8], "little")
    return whole[:size] + block("<", 10, struct.pack("<II", 0x544C534B, len(keys)) + keys) + whole[size:]


def test_secrets_inside_a_capture_open_it_only_on_request(tmp_path: Path) -> None:
    old, new = tmp_path / "inside.pcapng", tmp_path / "public.pcapng"
    old.write_bytes(with_secrets("tls_1_3"))
    for words, calls in (([], 0), (["--open-tls"], 24)):
        assert run(["anonymize", str(old), "-o", str(new), "--force", *words]) == 0
        assert len(decoded(new)["api_calls"]) == calls
        assert b"TRAFFIC_SECRET" not in new.read_bytes()


def test_a_key_log_alone_opens_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture, keys, new = CAPTURES / "tls_1_3" / "capture.pcap", CAPTURES / "tls_1_3" / "keys.log", "a.pcapng"
    assert run(["anonymize", str(capture), "--tls-keylog", str(keys), "-o", str(tmp_path / new)]) == 2
    assert "--open-tls" in capsys.readouterr().err
    assert not (tmp_path / new).exists()


def test_connections_without_keys_stay_closed(tmp_path: Path) -> None:
    _, rows = read_frames((CAPTURES / "tls_1_3" / "capture.pcap").read_bytes())
    capture, keys = tmp_path / "old.pcap", tmp_path / "few.log"
    capture.write_bytes(pcap(rows))
    lines = (CAPTURES / "tls_1_3" / "keys.log").read_text().splitlines()
    sessions = sorted({line.split()[1] for line in lines if line.count(" ") == 2})
    keys.write_text("\n".join(line for line in lines if sessions[0] in line) + "\n")
    new, _ = opening(tmp_path, capture, keys)
    before, after = (
        {row["client_port"]: row for row in decoded(path, **options)["connections"]}
        for path, options in ((capture, {"tls_keylog": str(keys)}), (new, {}))
    )
    assert {port: row["protocol"] for port, row in before.items()} == {
        port: row["protocol"] for port, row in after.items()
    }
    closed = [port for port, row in before.items() if row["protocol"] == "tls"]
    assert len(closed) == len(before) - 1
    for port in closed:
        for name in ("client_bytes", "broker_bytes", "tls_version", "tls_cipher", "tls_handshake"):
            assert before[port][name] == after[port][name] is not None


def dropped(rows: list[Frame], source: random.Random) -> list[Frame]:
    return [row for row in rows if source.random() > 0.05]


def flipped(rows: list[Frame], source: random.Random) -> list[Frame]:
    out = []
    for row in rows:
        data = bytearray(row.data)
        if source.random() < 0.2:
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        out.append(replace(row, data=bytes(data)))
    return out


def cut(rows: list[Frame], source: random.Random) -> list[Frame]:
    return [replace(row, data=row.data[: source.choice((40, 60, 120, 4000))]) for row in rows]


def mixed(rows: list[Frame], source: random.Random) -> list[Frame]:
    times = [row.time_ns for row in rows]
    several = [row for row in rows for _ in range(source.choice((1, 1, 2)))]
    order = sorted(range(len(several)), key=lambda at: at + source.randrange(6))
    return [replace(several[at], time_ns=times[0] + 1000 * new) for new, at in enumerate(order)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("damage", [dropped, flipped, cut, mixed])
@pytest.mark.parametrize("recording", RECORDINGS)
def test_damaged_records_raise_nothing_and_show_no_name(
    recording: str, damage: Callable[[list[Frame], random.Random], list[Frame]], seed: int, tmp_path: Path
) -> None:
    link, rows = read_frames((CAPTURES / recording / "capture.pcap").read_bytes())
    capture = tmp_path / "damaged.pcap"
    capture.write_bytes(pcap(damage(list(rows), random.Random(f"{recording}{seed}")), link))
    new, names = opening(tmp_path, capture, CAPTURES / recording / "keys.log")
    # Names of the whole recording, which what is damaged may not have said.
    whole = decoded(CAPTURES / recording / "capture.pcap", tls_keylog=str(CAPTURES / recording / "keys.log"))
    told_names = {
        str(row[name])
        for row in whole["api_calls"]
        for name in ("client_id", "group_id", "transactional_id")
        if row[name]
    }
    data = opened(new.read_bytes())
    kept = load_catalog().names
    for name in told_names:
        if len(name) > 5 and name not in kept.whole and name not in kept.words:
            assert name.encode() not in data
    assert count_packets(new) == len(read_frames(capture.read_bytes())[1])
    assert not set(names.values()) & told_names


def count_packets(path: Path) -> int:
    """Enhanced packet blocks of a pcapng file."""
    data, at, found = path.read_bytes(), 0, 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        found += kind == 6
        at += size
    return found


@pytest.mark.parametrize("damage", [None, "midstream"])
def test_calls_come_from_the_middle_of_a_connection(damage: str | None, tmp_path: Path) -> None:
    link, rows = read_frames((CAPTURES / "tls_1_3" / "capture.pcap").read_bytes())
    capture, keys = tmp_path / "part.pcap", CAPTURES / "tls_1_3" / "keys.log"
    capture.write_bytes(pcap(list(rows)[20:] if damage else rows, link))
    new, names = opening(tmp_path, capture, keys)
    before, after = (decoded(capture, tls_keylog=str(keys))["api_calls"], decoded(new)["api_calls"])
    assert counted(plain(before, "api_calls"), renaming(names)) == counted(plain(after, "api_calls"))
    assert len(after) >= 20


def test_connections_go_on_in_the_next_capture(tmp_path: Path) -> None:
    link, rows = read_frames((CAPTURES / "tls_1_3" / "capture.pcap").read_bytes())
    parts, keys = [tmp_path / "1.pcap", tmp_path / "2.pcap"], tmp_path / "keys.log"
    for path, some in zip(parts, (rows[:75], rows[75:]), strict=True):
        path.write_bytes(pcap(some, link))
    shutil.copy(CAPTURES / "tls_1_3" / "keys.log", keys)
    new, names = tmp_path / "public.pcapng", tmp_path / "names.tsv"
    words = ["--open-tls", "--tls-keylog", str(keys), "-o", str(new), "--map", str(names)]
    assert run(["anonymize", *map(str, parts), *words]) == 0
    before, after = decoded(*parts, tls_keylog=str(keys)), decoded(new)
    rename = renaming(read_map(names))
    for table in ("api_calls", "record_batches", "partitions"):
        # Frames, and so the numbers of calls, begin again in the second capture.
        old, open_ = (
            [
                {
                    name: value
                    for name, value in row.items()
                    if not re.search("frame|call_id|connection_id", name)
                }
                for row in plain(found[table], table)
            ]
            for found in (before, after)
        )
        assert counted(old, rename) == counted(open_)
    assert len(after["api_calls"]) == 24


def offloaded(data: bytes) -> bytes:
    """IP's length as a card with segmentation offload leaves it."""
    return data[:16] + b"\0\0" + data[18:]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "wrapping", ["vlan", "vxlan", "gre", "mpls", "pppoe", "raw", "radiotap", "offloaded"]
)
def test_opened_tls_stays_in_its_wrapping(wrapping: str, tmp_path: Path) -> None:
    link, wrap = WRAPPINGS.get(wrapping, (1, offloaded))
    _, rows = read_frames((CAPTURES / "tls_1_3" / "capture.pcap").read_bytes())
    wrapped = [replace(row, data=wrap(row.data), length=len(wrap(row.data))) for row in rows]
    capture, keys = tmp_path / "wrapped.pcap", CAPTURES / "tls_1_3" / "keys.log"
    capture.write_bytes(pcap(wrapped, link))
    new, names = opening(tmp_path, capture, keys)
    before, after = decoded(capture, tls_keylog=str(keys)), decoded(new)
    assert len(after["api_calls"]) == 24
    for table in ("api_calls", "record_batches", "connections"):
        old, open_ = (plain(found[table], table) for found in (before, after))
        assert counted(old, renaming(names)) == counted(open_), table
