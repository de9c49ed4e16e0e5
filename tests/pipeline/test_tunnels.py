"""Recorded calls inside tunnels and other link types give the rows that they give without."""

from __future__ import annotations

import itertools
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kwsniff.core.declared import ENUMS
from tests.pipeline.mirrored import calls, of_frames, recorded, timed
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.scenes import two_clients
from tests.traffic.tunnels import (
    LINK_WRAPS,
    WRAPS,
    Carrier,
    erspan,
    geneve,
    gre,
    gtpu,
    ip_of,
    mpls,
    nsh,
    outer,
    udp,
    vlan,
    vxlan,
    wrapped,
)

CAPTURE = "first_steps"
PLAIN = Carrier()


def in_tunnels(*ways: str, carrier: Carrier = PLAIN) -> list[Frame]:
    """The capture in tunnels, the innermost one first."""
    rows = list(recorded(CAPTURE))
    for way in ways:
        made = wrapped([row.data for row in rows], way, carrier)
        rows = [one for row, pieces in zip(rows, made, strict=True) for one in timed(row, pieces)]
    return rows


@pytest.mark.sample(16)
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("way", WRAPS)
def test_calls_inside_a_tunnel_are_those_without(way: str, version: int) -> None:
    plain, facts = of_frames(recorded(CAPTURE))
    rows, told = of_frames(in_tunnels(way, carrier=Carrier(version)))
    assert calls(rows) == calls(plain)
    assert len(calls(rows)) > 10
    assert told["packets_tcp"] == facts["packets_tcp"]
    assert {row["encapsulation"] for row in plain["connections"]} == {None}
    assert {row["encapsulation"] for row in rows["connections"]} == {WRAPS[way][0]}
    assert told[f"tunnel_{WRAPS[way][0]}"] == told["packets"]
    figures = [
        {name: value for name, value in row.items() if name not in ("capture", "encapsulation")}
        for found in (plain, rows)
        for row in found["connections"]
    ]
    assert figures[: len(figures) // 2] == figures[len(figures) // 2 :]
    assert rows["anomalies"] == plain["anomalies"]


@pytest.mark.sample(12)
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("way", WRAPS)
def test_fragments_of_the_packets_around_are_put_together(way: str, version: int) -> None:
    plain, facts = of_frames(recorded(CAPTURE))
    rows, told = of_frames(in_tunnels(way, carrier=Carrier(version, fragment_bytes=64)))
    assert calls(rows, frames=False) == calls(plain, frames=False)
    assert told["packets_tcp"] == facts["packets_tcp"]
    assert told["packets_tcp"] + told["packets_fragment"] == told["packets"]
    assert told["packets_fragment"] > facts["packets_tcp"]


@pytest.mark.parametrize("ways", [*itertools.permutations(("vxlan", "gre_teb", "geneve_options"), 2)])
def test_tunnels_in_tunnels(ways: tuple[str, str]) -> None:
    plain, _ = of_frames(recorded(CAPTURE))
    rows, _ = of_frames(in_tunnels(*ways))
    assert calls(rows) == calls(plain)
    names = [WRAPS[way][0] for way in reversed(ways)]
    assert {row["encapsulation"] for row in rows["connections"]} == {"/".join(names)}


def test_four_tunnels_are_opened_and_the_fifth_is_not() -> None:
    plain, facts = of_frames(recorded(CAPTURE))
    rows, told = of_frames(in_tunnels("gre_ip", "erspan_2", "vxlan", "gtpu"))
    assert calls(rows) == calls(plain)
    assert {row["encapsulation"] for row in rows["connections"]} == {"gtpu/vxlan/erspan/gre"}
    rows, told = of_frames(in_tunnels("gre_ip", "erspan_2", "vxlan", "gtpu", "geneve"))
    assert (rows["api_calls"], told["packets_tcp"]) == ([], 0)
    assert told["packets_not_tcp"] == facts["packets"]


def test_vlan_tags_and_mpls_inside_and_around() -> None:
    plain, _ = of_frames(recorded(CAPTURE))
    made = []
    for row in recorded(CAPTURE):
        inner = vlan(mpls(row.data), 7)
        (carrier,) = outer(17, udp(4789, vxlan(inner)), Carrier())
        frame = vlan(vlan(mpls(carrier, 900), 100), 200, 0x88A8)
        made.append(Frame(row.time_ns, frame, len(frame)))
    rows, _ = of_frames(made)
    assert calls(rows) == calls(plain)
    assert {row["encapsulation"] for row in rows["connections"]} == {"vxlan"}


@pytest.mark.parametrize("word", [b"", bytes(4), b"\0\0\1\7"])
def test_frames_inside_mpls_with_and_without_a_control_word(word: bytes) -> None:
    """Ethernet over MPLS (RFC 4448 4.6), with a VLAN tag inside or none."""
    plain, _ = of_frames(recorded(CAPTURE))
    for tagged in (False, True):
        made = []
        for row in recorded(CAPTURE):
            inner = vlan(row.data, 7) if tagged else row.data
            inner = bytes.fromhex("001122334455") + inner[6:]
            label = struct.pack(">I", 500 << 12 | 1 << 8 | 64)
            frame = row.data[:12] + b"\x88\x47" + label + word + inner
            made.append(Frame(row.time_ns, frame, len(frame)))
        rows, _ = of_frames(made)
        assert calls(rows) == calls(plain)


def test_fragments_inside_a_tunnel_are_put_together() -> None:
    """Inner packets cut into fragments, each in its own carrier, which is cut as well."""
    plain, facts = of_frames(recorded(CAPTURE))
    made = []
    for number, row in enumerate(recorded(CAPTURE)):
        packet = ip_of(row.data)
        for at in range(20, len(packet), 48):
            piece = packet[at : at + 48]
            more = at + len(piece) < len(packet)
            head = bytearray(packet[:20])
            head[2:4] = struct.pack(">H", 20 + len(piece))
            head[4:8] = struct.pack(">HH", number + 1, (at - 20) // 8 | more << 13)
            inner = row.data[:14] + bytes(head) + piece
            made += timed(
                row, outer(47, gre(inner, 0x6558), Carrier(ident=500 + len(made), fragment_bytes=40))
            )
    rows, told = of_frames(made)
    assert calls(rows, frames=False) == calls(plain, frames=False)
    assert told["packets_tcp"] == facts["packets_tcp"]
    few, _ = of_frames(made, limits={"ip_reassembly": 1})  # the outer one keeps the only place there is
    assert len(few["api_calls"]) < len(plain["api_calls"])


def test_ipv6_inside() -> None:
    plain = [row.data for row in frames(two_clients("fd00::").packets())]
    times = [row.time_ns for row in frames(two_clients("fd00::").packets())]
    want, _ = of_frames([Frame(t, d, len(d)) for t, d in zip(times, plain, strict=True)])
    assert want["api_calls"]
    for way in WRAPS:
        made = [one for (one,) in wrapped(plain, way)]
        rows, _ = of_frames([Frame(t, d, len(d)) for t, d in zip(times, made, strict=True)])
        assert calls(rows) == calls(want), way


@pytest.mark.parametrize("name", LINK_WRAPS)
def test_link_types_that_carry_ip(name: str) -> None:
    plain, _ = of_frames(recorded(CAPTURE))
    number, wrap = LINK_WRAPS[name]
    made = [wrap(ip_of(row.data)) for row in recorded(CAPTURE)]
    rows, told = of_frames(
        [Frame(row.time_ns, data, len(data)) for row, data in zip(recorded(CAPTURE), made, strict=True)],
        number,
    )
    assert calls(rows) == calls(plain)
    assert told["packets_tcp"] == told["packets"]
    assert told["link_types"] != ["other"]


NOT_TUNNELS = {
    "a port alone": udp(4789, b"hello world, this is not a tunnel at all, only text of somebody"),
    "VXLAN without its flag": udp(4789, bytes(1) + vxlan(bytes(60))[1:]),
    "VXLAN with noise inside": udp(4789, vxlan(bytes(range(80)))),
    "Geneve of a later version": udp(6081, b"\x40" + geneve(bytes(60))[1:]),
    "Geneve with options beyond its end": udp(6081, b"\x3f" + geneve(bytes(60))[1:]),
    "an echo of GTP-U": udp(2152, struct.pack(">BBHI", 0x32, 1, 4, 0) + bytes(4)),
    "zeroes": udp(2152, bytes(200)),
}


@pytest.mark.parametrize("name", NOT_TUNNELS)
def test_a_port_is_no_tunnel(name: str) -> None:
    (frame,) = outer(17, NOT_TUNNELS[name], Carrier())
    rows, told = of_frames([Frame(0, frame, len(frame))])
    assert (told["packets_not_tcp"], told["unread_protocol_17"]) == (1, 1)
    assert not [name for name in told if name.startswith("tunnel_")]
    assert rows["connections"] == []


def test_an_inner_packet_longer_than_its_datagram_is_somebody_elses() -> None:
    frame = recorded(CAPTURE)[0].data
    longer = bytearray(frame)
    longer[16:18] = struct.pack(">H", len(frame) + 200)
    for data, tcp in ((frame, 1), (bytes(longer), 0)):
        (carrier,) = outer(17, udp(4789, vxlan(data)), Carrier())
        _, told = of_frames([Frame(0, carrier, len(carrier))])
        assert told["packets_tcp"] == tcp


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    import kwsniff

    packets = [
        bytes(12) + struct.pack(">H", 0x0806) + bytes(28),
        *outer(50, bytes(40), Carrier()),
        *outer(17, udp(53, bytes(40)), Carrier()),
        *outer(17, udp(53, bytes(40)), Carrier()),
    ]
    path = tmp_path / "mixed.pcap"
    path.write_bytes(pcap([Frame(0, data, len(data)) for data in packets]))
    (row,) = kwsniff.analyze(path).captures.to_pylist()
    assert row["not_read"] == ["UDP=2", "ARP=1", "ESP=1"]
    assert row["encapsulations"] is None
    path.write_bytes(pcap([Frame(0, bytes(60), 60)] * 123, 107))
    (row,) = kwsniff.analyze(path).captures.to_pylist()
    assert (row["not_read"], row["skipped_unknown_link_type"]) == (["Frame Relay=123"], 123)
    path.write_bytes(pcap(in_tunnels("erspan_3", "vxlan"), nanoseconds=True))
    (row,) = kwsniff.analyze(path).captures.to_pylist()
    assert row["encapsulations"] == [f"erspan={row['packets']}", f"vxlan={row['packets']}"]


# -- second witnesses of the headers above -------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("way", [way for way in WRAPS if way != "vxlan_8472"])  # tshark calls that OTV
def test_tshark_sees_the_same_segments_inside(way: str, version: int, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(pcap(in_tunnels(way, carrier=Carrier(version)), nanoseconds=True))
    fields = ("tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len")
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *(part for f in fields for part in ("-e", f))]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(pcap(recorded(CAPTURE), nanoseconds=True))
    command[3] = str(plain)
    want = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == want
    assert all(line.split("\t")[0] for line in want)


@pytest.mark.parametrize("version", [4, 6])
def test_scapy_writes_the_same_headers(version: int) -> None:
    pytest.importorskip("scapy")
    from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
    from scapy.contrib.geneve import GENEVE
    from scapy.contrib.gtp import GTP_U_Header
    from scapy.layers.inet import GRE
    from scapy.layers.l2 import Ether
    from scapy.layers.vxlan import VXLAN

    frame = recorded(CAPTURE)[0].data
    inner = Ether(frame)
    assert bytes(VXLAN(vni=42, flags="Instance") / inner) == vxlan(frame)
    assert bytes(GENEVE(vni=42, proto=0x6558) / inner) == geneve(frame)
    assert bytes(GRE(proto=0x6558, key_present=1, key=9) / inner) == gre(frame, 0x6558, key=9)
    two = GRE(seqnum_present=1, sequence_number=3) / ERSPAN_II(vlan=100, session_id=5, index=9) / inner
    assert bytes(two) == erspan(frame, 2)
    three = (
        GRE(seqnum_present=1, sequence_number=3)
        / ERSPAN_III(vlan=100, session_id=5, timestamp=123_456)
        / inner
    )
    assert bytes(three) == erspan(frame, 3)
    assert bytes(GTP_U_Header(teid=77) / Ether(frame).payload)[8:] == gtpu(frame)[8:]


def test_every_tunnel_that_has_a_name_is_tried() -> None:
    assert {name for name, _ in WRAPS.values()} == set(ENUMS["tunnel"])


@pytest.mark.parametrize("header", [nsh(b"", 6), nsh(b"", 4), nsh(b"", 0, b"")])
def test_a_service_header_with_something_else_inside_is_named(header: bytes) -> None:
    """RFC 8300 2.2: what follows is neither IP nor Ethernet nor MPLS."""
    row = next(iter(recorded(CAPTURE)))
    data = row.data[:12] + b"\x89\x4f" + header + row.data[14:]
    _, told = of_frames([Frame(row.time_ns, data, len(data))])
    assert (told["unread_ether_nsh"], told["packets_not_ip"]) == (1, 1)
    _, told = of_frames([Frame(row.time_ns, data[:20], len(data))])
    assert told["packets_malformed"] == 1
