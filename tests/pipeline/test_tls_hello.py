"""TLS connections without keys: what the table says of their handshakes, against tshark."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import capture_of, decoded, written
from tests.pipeline.running import analyzer, rows_of_bytes
from tests.traffic import files, tls
from tests.traffic.files import frames
from tests.traffic.hello import client_hello, records, server_hello
from tests.traffic.tcp import MILLISECOND, SYN, Packet, Scene, Script

CAPTURES = Path(__file__).parents[2] / "captures"
COLUMNS = ("tls_version", "tls_server_name", "tls_cipher")
SHOWN = ("1.3", "kafka.example", "TLS_AES_256_GCM_SHA384")
# tshark reads what is inside GENEVE on that port; kwsniff does not.
NOT_OURS = {"tunnels__geneve-47101.pcap", "common__decapsulate_erspan1.pcap"}


def greetings(mss: int = 1448, **more: Any) -> Scene:
    scene = Scene()
    script = scene.connection(mss=mss)
    script.open()
    script.write(records(client_hello(**more)), MILLISECOND, from_client=True)
    script.write(records(server_hello()), 2 * MILLISECOND, from_client=False)
    script.write(b"\x17\x03\x03\x00\x40" + bytes(64), 3 * MILLISECOND, from_client=True)
    script.close(4 * MILLISECOND)
    return scene


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in COLUMNS) for row in rows]


def with_hellos() -> list[Path]:
    places = [CAPTURES, CAPTURES.parents[1] / "shared" / "captures" / "tcp"]
    wanted = ("*tls*/*.pcap*", "*/*tls*.pcap*", "*/pppoe-over-qinq.pcap", "*/err-buffertoosmall.pcapng")
    found = {path for place in places for pattern in wanted for path in place.glob(pattern)}
    return sorted(path for path in found if path.name not in NOT_OURS and path.stat().st_size < 1 << 20)


def by_tshark(path: Path) -> dict[tuple[int, int], tuple[str | None, str | None, int | None]]:
    """(client port, broker port) -> negotiated version, server name, suite: of a stream's first hellos."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ("tcp.stream", "tcp.srcport", "tcp.dstport", "tls.handshake.type", "tls.handshake.version")
    fields += ("tls.handshake.extensions.supported_version", "tls.handshake.extensions_server_name")
    fields += ("tls.handshake.ciphersuite",)
    command = ["tshark", "-n", "-r", str(path), "-d", "tcp.port==1-65535,tls", "-T", "fields"]
    command += ["-Y", "tls.handshake.type==1 || tls.handshake.type==2", "-E", "occurrence=f"]
    command += [word for field in fields for word in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[tuple[int, int], tuple[str | None, str | None, int | None]] = {}
    for line in done.stdout.splitlines():
        _, source, target, kind, version, chosen, name, suite = line.split("\t")
        if kind == "1":
            key = (int(source), int(target))
            found.setdefault(key, (None, name or None, None))
        elif kind == "2":
            key = (int(target), int(source))
            before = found.get(key, (None, None, None))
            if before[2] is None:
                found[key] = (chosen or version, before[1], int(suite, 0))
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", with_hellos(), ids=lambda path: path.name)
def test_handshakes_are_those_tshark_reads(path: Path) -> None:
    theirs = by_tshark(path)
    if not theirs:
        pytest.skip("tshark sees no hello")
    rows = decoded(path, tls_keylog=False)["connections"]
    ours = {(row["client_port"], row["broker_port"]): row for row in rows if row["protocol"] == "tls"}
    assert set(theirs) <= set(ours)
    from kwsniff.core.tls.hello_texts import NAMES

    for ends, (version, name, suite) in theirs.items():
        row = ours[ends]
        known = {0x0304: "1.3", 0x0303: "1.2", 0x0302: "1.1", 0x0301: "1.0"}
        assert row["tls_version"] == (known[int(version, 0)] if version else None)
        assert row["tls_server_name"] == name
        assert row["tls_cipher"] == (NAMES[suite].decode() if suite is not None else None)


def test_a_hello_over_many_segments(tmp_path: Path) -> None:
    for mss in (1, 7, 50, 1448):
        scene = greetings(mss, padding=3000 if mss > 7 else 0)
        (row,) = decoded(capture_of(tmp_path / "tls.pcap", scene.packets()))["connections"]
        assert (row["protocol"], *shown([row])[0]) == ("tls", *SHOWN)


def test_segments_out_of_order_and_repeated(tmp_path: Path) -> None:
    packets = greetings(60).packets()
    first = next(index for index, packet in enumerate(packets) if packet.payload)
    packets[first], packets[first + 1] = packets[first + 1], packets[first]
    packets.insert(first + 2, packets[first])
    assert shown(decoded(capture_of(tmp_path / "tls.pcap", packets))["connections"]) == [SHOWN]


@pytest.mark.parametrize("snaplen", range(54, 300, 7))
def test_of_cut_packets_what_is_there(tmp_path: Path, snaplen: int) -> None:
    path = written(tmp_path / "tls.pcap", frames(greetings().packets(), snaplen=snaplen))
    for row in decoded(path)["connections"]:
        for value, true in zip(shown([row])[0], SHOWN, strict=True):
            assert value in (None, true)


def test_begun_in_the_middle_nothing_is_said(tmp_path: Path) -> None:
    packets = greetings().packets()
    (row,) = decoded(capture_of(tmp_path / "late.pcap", packets[-4:]))["connections"]
    assert (row["protocol"], *shown([row])[0]) == ("tls", None, None, None)


def test_without_a_tcp_handshake_who_greets_is_the_client(tmp_path: Path) -> None:
    packets = [packet for packet in greetings().packets() if not packet.flags & SYN]
    swapped = [packet for packet in packets if not packet.from_client or packet.offset or not packet.payload]
    for some in (packets, swapped):
        (row,) = decoded(capture_of(tmp_path / "tls.pcap", some))["connections"]
        assert (row["client_port"], row["broker_port"], row["role_source"]) == (50_000, 9092, "content")
        assert row["tls_version"] == "1.3"


def test_a_port_that_is_kafkas_does_not_hide_tls(tmp_path: Path) -> None:
    path = capture_of(tmp_path / "tls.pcap", greetings().packets())
    (row,) = decoded(path, ports=[9092])["connections"]
    assert (row["protocol"], *shown([row])[0]) == ("tls", *SHOWN)


def test_a_lost_segment_costs_what_it_held(tmp_path: Path) -> None:
    packets = greetings(70).packets()
    client = [index for index, packet in enumerate(packets) if packet.payload and packet.from_client]
    rows = []
    for lost in client[:3]:
        kept: list[Packet] = [packet for index, packet in enumerate(packets) if index != lost]
        rows += decoded(capture_of(tmp_path / "tls.pcap", kept))["connections"]
    assert {row["tls_version"] for row in rows} == {"1.3"}
    assert {row["tls_server_name"] for row in rows} <= {None, "kafka.example"}


def test_kafka_has_no_tls(tmp_path: Path) -> None:
    from tests.traffic import scenes

    rows = decoded(capture_of(tmp_path / "plain.pcap", scenes.two_clients().packets()))["connections"]
    assert shown(rows) == [(None, None, None)] * 2


def test_no_memory_for_hellos_costs_only_them() -> None:
    data = files.pcap(frames(greetings(40).packets()))
    (row,) = rows_of_bytes(data, limits={"frame_kept_bytes_total": 100})["connections"]
    assert row["protocol"] == "tls"
    assert row["tls_server_name"] is None
    assert rows_of_bytes(data)["connections"][0]["tls_server_name"] == "kafka.example"


def test_many_greetings_that_never_end_hold_bounded_memory() -> None:
    """A limit of a megabyte for all of them; what they hold is in the state."""
    scene = Scene()
    for _ in range(400):
        script = scene.connection(mss=8000)
        script.open()
        script.write(records(client_hello(padding=14_000))[:13_000], MILLISECOND, from_client=True)
    engine = analyzer(limits={"frame_kept_bytes_total": 1 << 20})
    engine.open_capture("capture")
    engine.feed(files.pcap(frames(scene.packets())))
    assert len(engine.save()) < (2 << 20) + 400 * 8000


@pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))
def test_a_connection_that_decrypts_keeps_what_its_handshake_showed(tmp_path: Path) -> None:
    from tests.traffic import scenes

    keys = tls.KeyLog(tmp_path)
    for version, text in zip(tls.VERSIONS, ("1.2", "1.3"), strict=True):
        path = capture_of(tmp_path / "tls.pcap", keys.encrypt(scenes.two_clients(), version).packets())
        rows = decoded(path, tls_keylog=keys.path)["connections"]
        assert {(row["protocol"], row["tls_version"]) for row in rows} == {("kafka", text)}
        assert shown(rows) == shown(decoded(path)["connections"])
        assert None not in {row["tls_cipher"] for row in rows}


def hello_that_ends(number: int) -> Script:
    """The broker resets the connection after a ClientHello."""
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(records(client_hello()), MILLISECOND, from_client=True)
    script.reset(2 * MILLISECOND)
    return replace_number(scene, number)


def test_nobody_is_asked_for_the_secrets_of_hellos_without_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kwsniff.cli.main import run

    secrets = "TLS encrypts the traffic: give its secrets with --tls-keylog"
    told = "3 ClientHellos to kafka.example:9092 without ServerHello: see tls_alert, closed_by"
    asked = "{} to kafka.example:9092, TLS 1.3, without keys: see --tls-keylog"
    scene = Scene()
    scene.scripts = [hello_that_ends(number) for number in range(3)]
    path = capture_of(tmp_path / "ended.pcap", scene.packets())
    assert run(["analyze", str(path)]) == 0
    out = capsys.readouterr().out
    assert "no TLS handshake got a ServerHello" in out
    assert told in out.splitlines()
    assert "--tls-keylog" not in out
    scene.scripts += [replace_number(greetings(), number) for number in (3, 4)]
    path = capture_of(tmp_path / "both.pcap", scene.packets())
    assert run(["analyze", str(path)]) == 0
    out = capsys.readouterr().out
    assert secrets in out
    assert {told, asked.format("2 TLS connections")} <= set(out.splitlines())
    scene.scripts = [replace_number(greetings(), number) for number in range(2)]
    heard = [packet for packet in scene.packets() if packet.from_client]
    path = capture_of(tmp_path / "half.pcap", heard)
    assert run(["analyze", str(path)]) == 0
    assert "ServerHello" not in capsys.readouterr().out


def test_show_says_of_hellos_what_a_summary_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kwsniff.cli.main import run

    scene = Scene()
    scene.scripts = [hello_that_ends(number) for number in range(2)]
    scene.scripts += [replace_number(greetings(), number) for number in range(2, 5)]
    path = capture_of(tmp_path / "both.pcap", scene.packets())
    lines = {
        "2 ClientHellos to kafka.example:9092 without ServerHello: see tls_alert, closed_by",
        "3 TLS connections to kafka.example:9092, TLS 1.3, without keys: see --tls-keylog",
    }
    assert run(["analyze", str(path)]) == 0
    assert lines <= set(capsys.readouterr().out.splitlines())
    run(["show", str(path)])
    notes = capsys.readouterr().err.splitlines()
    assert {f"kwsniff: note: {line}" for line in lines} == {
        line for line in notes if "Hello" in line or "TLS" in line
    }


def test_the_summary_names_brokers_behind_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kwsniff.cli.main import run

    scene = Scene()
    scene.scripts = [
        *(replace_number(greetings(), number) for number in range(3)),
        replace_number(greetings(name=None), 3),
    ]
    path = capture_of(tmp_path / "tls.pcap", scene.packets())
    lines = [
        "3 TLS connections to kafka.example:9092, TLS 1.3, without keys: see --tls-keylog",
        "1 TLS connection to 10.1.0.92:9092, TLS 1.3, without keys: see --tls-keylog",
    ]
    assert run(["analyze", str(path)]) == 0
    assert set(lines) <= set(capsys.readouterr().out.splitlines())
    run(["show", str(path)])
    said = capsys.readouterr()
    assert [f"kwsniff: note: {line}" for line in lines] == said.err.splitlines()[:2]


def replace_number(scene: Scene, number: int) -> Any:
    (script,) = scene.scripts
    script.number = number
    script.client = replace(script.client, port=50_000 + number)
    return script


def test_the_summary_says_what_tls_shows_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """Suite, round trip, bytes and records of each side (as tshark sums them), what was sent again, ends."""
    from kwsniff.cli.main import run

    path = Path(__file__).parents[2] / "captures" / "tls_1_3" / "capture.pcap"
    assert run(["analyze", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("5 TLS connections to 127.0.0.1:9092, TLS 1.3, without keys: see --tls-keylog")
    assert lines[at + 1] == (
        "  TLS_AES_256_GCM_SHA384, round trip 15 us, client sent 4.0 kB in 34 records, "
        "broker sent 17.3 kB in 40 records, 24 bytes retransmitted, 1 reset"
    )
    assert run(["analyze", str(path), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["tls_not_opened"]
    assert (told["client_tls_records"], told["broker_tls_records"], told["resets"]) == (34, 40, 1)
    assert told["without_handshake"] == 0


def test_a_connection_whose_handshake_was_not_captured_is_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kwsniff.cli.main import run

    scene = Scene()
    script = scene.connection()
    for call in range(5):
        record = b"\x17\x03\x03" + (100 + call).to_bytes(2, "big") + bytes(100 + call)
        script.write(record * 2, (call + 1) * MILLISECOND, from_client=True)
        script.write(record, (call + 1) * MILLISECOND + 1000, from_client=False)
    path = capture_of(tmp_path / "midway.pcap", scene.packets())
    line = "1 TLS connection to 10.1.0.92:9092, handshake not captured: see --tls-keylog"
    assert run(["analyze", str(path)]) == 0
    out = capsys.readouterr().out
    assert line in out.splitlines()
    assert "client sent 1.1 kB in 10 records, broker sent 535 bytes in 5 records" in out
    run(["show", str(path)])
    assert f"kwsniff: note: {line}" in capsys.readouterr().err.splitlines()
