"""Packets in other wrappings, sent again, in fragments, of other protocols: no address or name is left."""

from __future__ import annotations

import ipaddress
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
from kwsniff.anonymize.addresses import Addresses
from kwsniff.anonymize.packets import Packets
from kwsniff.cli.main import run
from tests.anonymize.renaming import counted, read_map, renaming
from tests.pipeline.compare import analyzed
from tests.traffic.files import Frame, block, option, pcap, pcapng, read_frames
from tests.traffic.links import checksum
from tests.traffic.tunnels import erspan, geneve, gre, gtpu, udp, vxlan

FIRST_STEPS = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
OUTER = bytes.fromhex("02000000000a02000000000b0800")
ENDS = ipaddress.ip_address("172.31.44.5").packed + ipaddress.ip_address("172.31.44.66").packed
HOSTS = {b"\x7f\x00\x00\x01": b"\x0a\x14\x1e\x28"}  # the recording is of loopback: 10.20.30.40


def ipv4(protocol: int, payload: bytes, *, ends: bytes = ENDS, number: int = 1, word: int = 0x4000) -> bytes:
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), number, word, 64, protocol, 0) + ends
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def recorded() -> list[Frame]:
    """Ethernet frames of the recording, with an address that is not of loopback."""
    _, rows = read_frames(FIRST_STEPS.read_bytes())
    out = []
    for row in rows:
        data = row.data
        for old, new in HOSTS.items():
            data = data[:26] + data[26:34].replace(old, new) + data[34:]
        out.append(replace(row, data=data))
    return out


def ip_of(data: bytes) -> bytes:
    return data[14:]


# Two labels, the second one the last; a PPPoE session of number 9.
LABELS = bytes.fromhex("8847 001f4040 00259140")
SESSION = bytes.fromhex("8864 1100 0009")


# NSH with contexts of sixteen bytes; a prefix of NFLOG; PPI with a field; radiotap with clock and flags.
SERVICE = bytes.fromhex("894f 0fc60101 00000cff") + b"secret-context-1"
SNAP = bytes.fromhex("aaaa03 000000 0800")
PREFIX = struct.pack("<HH", 15, 10) + b"secret-name\0"
PPI = struct.pack("<BBHIHH", 0, 0, 24, 105, 30002, 12) + b"secret-place"
RADIOTAP = struct.pack("<BBHIQBB", 0, 0, 18, 0b111, 1_700_000, 0, 11)


def wireless(control: bytes = b"\x08\1") -> bytes:
    """The header of a data frame (IEEE 802.11-2020 9.2.4), up to LLC."""
    macs = [bytes.fromhex(each) for each in ("0200000000aa", "0200000000ab", "0200000000ac")]
    more = bytes.fromhex("0200000000ad") if control[1] & 3 == 3 else b""
    more += b"\5\0" if control[0] & 0x80 else b""
    return control + b"\x2c\0" + b"".join(macs) + b"\x10\0" + more + SNAP


WRAPPINGS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (1, lambda data: data),
    "vlan": (1, lambda data: data[:12] + b"\x81\x00\x20\x64" + data[12:]),
    "double vlan": (1, lambda data: data[:12] + b"\x88\xa8\x00\x64\x81\x00\x00\xc8" + data[12:]),
    "cooked": (113, lambda data: b"\0\0\0\1\0\6" + data[:6] + b"\0\0\x08\0" + ip_of(data)),
    "cooked 2": (276, lambda data: b"\x08\0\0\0\0\0\0\2\0\1\0\6" + data[:6] + b"\0\0" + ip_of(data)),
    "raw": (101, ip_of),
    "null": (0, lambda data: b"\2\0\0\0" + ip_of(data)),
    "vxlan": (1, lambda data: OUTER + ipv4(17, udp(4789, vxlan(data)))),
    "geneve": (1, lambda data: OUTER + ipv4(17, udp(6081, geneve(data, b"\1\2\3\1name")))),
    "mpls": (1, lambda data: data[:12] + LABELS + ip_of(data)),
    "ethernet in mpls": (1, lambda data: OUTER[:12] + LABELS + b"\x02" + data[1:]),
    "ethernet in mpls with a control word": (1, lambda data: OUTER[:12] + LABELS + bytes(4) + data),
    "pppoe": (
        1,
        lambda data: data[:12] + SESSION + struct.pack(">H", len(data) - 12) + b"\0\x21" + ip_of(data),
    ),
    "vlan and pppoe in mpls": (
        1,
        lambda data: (
            OUTER[:12]
            + LABELS
            + data[:12]
            + b"\x81\x00\x00\x07"
            + SESSION
            + struct.pack(">H", len(data) - 12)
            + b"\0\x21"
            + ip_of(data)
        ),
    ),
    "gre": (1, lambda data: OUTER + ipv4(47, gre(ip_of(data), 0x0800, key=7))),
    "erspan 1": (1, lambda data: OUTER + ipv4(47, erspan(data, 1))),
    "erspan 2": (1, lambda data: OUTER + ipv4(47, erspan(data, 2))),
    "erspan 3": (1, lambda data: OUTER + ipv4(47, erspan(data, 3))),
    "erspan 3 with more": (1, lambda data: OUTER + ipv4(47, erspan(data, 3, optional=True))),
    "gtp-u": (1, lambda data: OUTER + ipv4(17, udp(2152, gtpu(data)))),
    "gtp-u with extensions": (
        1,
        lambda data: OUTER + ipv4(17, udp(2152, gtpu(data, sequence=True, extensions=2))),
    ),
    "gre with a checksum": (1, lambda data: OUTER + ipv4(47, b"\x80\0\x08\0\1\2\0\0" + ip_of(data))),
    "vxlan gpe": (1, lambda data: OUTER + ipv4(17, udp(4790, b"\x0c\0\0\1\0\0\7\0" + ip_of(data)))),
    "nsh": (1, lambda data: data[:12] + SERVICE + ip_of(data)),
    "snap": (1, lambda data: data[:12] + struct.pack(">H", len(data) - 6) + SNAP + ip_of(data)),
    "ppp": (9, lambda data: b"\xff\3\0\x21" + ip_of(data)),
    "ppp, short": (50, lambda data: b"\x21" + ip_of(data)),
    "ppp, with direction": (204, lambda data: b"\1\xff\3\0\x21" + ip_of(data)),
    "pppd": (166, lambda data: b"\1\3\0\x21" + ip_of(data)),
    "pppoe alone": (
        51,
        lambda data: SESSION[2:] + struct.pack(">H", len(data) - 12) + b"\0\x21" + ip_of(data),
    ),
    "cisco hdlc": (104, lambda data: b"\x0f\0\x08\0" + ip_of(data)),
    "cisco hdlc with direction": (205, lambda data: b"\0\x0f\0\x08\0" + ip_of(data)),
    "nflog": (239, lambda data: b"\2\0\0\5" + PREFIX + struct.pack("<HH", len(data) - 10, 9) + ip_of(data)),
    "802.11": (105, lambda data: wireless() + ip_of(data)),
    "802.11 between access points": (105, lambda data: wireless(b"\x88\3") + ip_of(data)),
    "radiotap": (127, lambda data: RADIOTAP + wireless() + ip_of(data)),
    "802.11 in ppi": (192, lambda data: PPI + wireless(b"\x88\1") + ip_of(data)),
    "ip in ip": (1, lambda data: OUTER + ipv4(4, ip_of(data))),
}


def anonymized(folder: Path, capture: bytes) -> tuple[Path, Path, dict[str, str]]:
    """The capture, what it became, and the map."""
    old, new, key, names = (folder / name for name in ("old.pcap", "public.pcapng", "site.key", "names.tsv"))
    old.write_bytes(capture)
    key.write_text("one secret of more than sixteen bytes")
    assert run(["anonymize", str(old), "-o", str(new), "--key", str(key), "--map", str(names)]) == 0
    return old, new, read_map(names)


def assert_same_tables(folder: Path, capture: bytes, calls: int = 34) -> bytes:
    """Returns the bytes of the output."""
    old, new, names = anonymized(folder, capture)
    rename = renaming(names)
    before, after = analyzed(old), analyzed(new)
    assert len(after["api_calls"]) == calls
    for table in set(before) - {"captures"}:
        rows = [[{**row, "capture": None} for row in found[table]] for found in (before, after)]
        assert counted(rows[0], rename) == counted(rows[1]), table
    data = new.read_bytes()
    for name in (b"orders", b"billing", b"shop-producer", b"secret", *HOSTS.values(), ENDS[:4], ENDS[4:]):
        assert name not in data
    return data


@pytest.mark.sample(6)
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_calls_are_the_same_in_every_wrapping(wrapping: str, tmp_path: Path) -> None:
    link, wrap = WRAPPINGS[wrapping]
    rows = [Frame(row.time_ns, wrap(row.data), len(wrap(row.data))) for row in recorded()]
    assert_same_tables(tmp_path, pcap(rows, link))
    if shutil.which("tshark"):
        assert bad_checksums(tmp_path / "public.pcapng") == ""


def bad_checksums(path: Path) -> str:
    return checksums(path, "tcp.checksum.status == 0 || ip.checksum.status == 0")


def checksums(path: Path, which: str) -> str:
    """A line for each packet that has such checksums."""
    words = ["tshark", "-n", "-r", str(path), "-Y", which]
    words += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_retransmissions_and_reordering_get_what_the_first_ones_got(tmp_path: Path) -> None:
    source = random.Random(3)
    rows = [again for row in recorded() for again in [row] * source.choice((1, 1, 1, 2))]
    for at in range(0, len(rows) - 1, 7):
        rows[at], rows[at + 1] = (
            replace(rows[at + 1], time_ns=rows[at].time_ns),
            replace(rows[at], time_ns=rows[at + 1].time_ns),
        )
    assert_same_tables(tmp_path, pcap(rows))


def fragments(row: Frame, number: int, size: int = 64) -> list[Frame]:
    packet = ip_of(row.data)
    payload = packet[20 : int.from_bytes(packet[2:4], "big")]
    out = []
    for at in range(0, len(payload), size):
        more = at + size < len(payload)
        piece = ipv4(6, payload[at : at + size], ends=packet[12:20], number=number, word=at // 8 | more << 13)
        out.append(Frame(row.time_ns, row.data[:14] + piece, 14 + len(piece)))
    return out


def test_fragments_are_parts_of_their_segments(tmp_path: Path) -> None:
    rows = [piece for number, row in enumerate(recorded(), 1) for piece in fragments(row, number)]
    assert_same_tables(tmp_path, pcap(rows))
    if shutil.which("tshark"):
        assert bad_checksums(tmp_path / "public.pcapng") == ""
        assert len(checksums(tmp_path / "public.pcapng", "tcp.checksum.status == 1").splitlines()) == 146


def test_a_segment_without_one_of_its_fragments_has_no_checksum(tmp_path: Path) -> None:
    rows = [piece for number, row in enumerate(recorded(), 1) for piece in fragments(row, number)[:-1]]
    _, new, _ = anonymized(tmp_path, pcap(rows))
    packets = [each[28:] for each in _blocks(new.read_bytes(), "<") if each[0] == 6]
    first = [packet for packet in packets if packet[20:22] == b"\x20\0"]
    assert len(first) > 60
    assert all(packet[50:52] == b"\0\0" for packet in first)


def test_cut_packets_stay_cut(tmp_path: Path) -> None:
    rows = [replace(row, data=row.data[:110]) for row in recorded()]
    assert_same_tables(tmp_path, pcap(rows))


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_packets_without_a_time_stay_so(kind: str, tmp_path: Path) -> None:
    rows = recorded()
    if kind == "pcap":
        capture = bytearray(pcap(rows))
        for frame in range(40, 60):  # more than a second of fraction
            at = 24 + sum(16 + len(each.data) for each in rows[:frame])
            capture[at + 4 : at + 8] = struct.pack("<I", 3_000_000_000)
    else:
        blocks = _blocks(pcapng(rows), "<")
        packets = [at for at, each in enumerate(blocks) if each[:1] == b"\6"][40:60]
        for at, row in zip(packets, rows[40:60], strict=True):
            blocks[at] = block("<", 3, struct.pack("<I", len(row.data)) + row.data)
        capture = bytearray(b"".join(blocks))
    data = assert_same_tables(tmp_path, bytes(capture))
    kinds = [each[0] for each in _blocks(data, "<") if each[0] in (3, 6)]
    assert [number for number, each in enumerate(kinds) if each == 3] == [*range(40, 60)]


def test_the_file_ends_as_the_capture_does(tmp_path: Path) -> None:
    whole = pcap(recorded())
    damage = struct.pack("<IIII", 1, 2, 1 << 31, 64)
    dropped = block("<", 5, struct.pack("<III", 0, 0, 0) + option("<", 5, struct.pack("<Q", 300)))
    ends = {
        ("ends inside a packet",): whole[:-9],
        ("is damaged",): whole + damage,
        ("dropped 300 packets",): pcapng(recorded()) + dropped,
        ("dropped 300 packets", "ends inside a packet"): pcapng(recorded())
        + dropped
        + struct.pack("<II", 6, 64),
    }
    for number, (words, capture) in enumerate(ends.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert_same_tables(folder, capture)
        for name in ("old.pcap", "public.pcapng"):
            found = kwsniff.analyze(folder / name, tables=["findings"]).findings.to_pylist()
            (text,) = (row["text"] for row in found if row["finding"] == "capture_incomplete")
            assert all(each in text for each in words), name


@pytest.mark.parametrize("big", [False, True])
def test_blocks_with_names_and_secrets_are_left_out(big: bool, tmp_path: Path) -> None:
    order = ">" if big else "<"
    section, *rest = _blocks(pcapng(recorded(), big=big), order)
    comment = block(order, 5, struct.pack(order + "III", 0, 0, 0) + option(order, 1, b"captured by alice"))
    data = assert_same_tables(tmp_path, section + b"".join(rest) + comment)
    for name in (b"broker-1", b"none", b"alice"):
        assert name not in data
    assert {int.from_bytes(each[:4], "little") for each in _blocks(data, "<")} == {0x0A0D0D0A, 1, 6}


def _blocks(data: bytes, order: str) -> list[bytes]:
    out, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from(order + "I", data, at + 4)
        out.append(data[at : at + size])
        at += size
    return out


OTHERS: dict[str, Sequence[bytes]] = {
    "arp": [bytes.fromhex("ffffffffffff02000000000a0806") + b"\0\1\x08\0\6\4\0\1" + b"secret-name" * 3],
    "dns": [OUTER + ipv4(17, udp(53, b"\0\0broker-secret-name\0"))],
    "other tcp": [
        OUTER
        + ipv4(6, struct.pack(">HHIIBBHHH", 5555, 6666, 1, 1, 0x50, 0x18, 100, 0, 0) + b"secret-name" * 9)
    ],
    "unknown link": [b"secret-name" * 9],
    "tcp options": [
        OUTER
        + ipv4(
            6, struct.pack(">HHIIBBHHH", 5555, 6666, 1, 1, 0x80, 2, 100, 0, 0) + b"\xfd\x0csecret-name"[:12]
        )
    ],
    "icmp echo": [OUTER + ipv4(1, b"\x08\0\0\0\0\1\0\1" + b"secret-name" * 3)],
    "icmp unreachable": [
        OUTER + ipv4(1, b"\x03\x03\0\0\0\0\0\0" + ipv4(17, udp(9, b"secret-name"), ends=ENDS))
    ],
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("other", OTHERS)
def test_what_is_not_understood_is_blank(other: str, tmp_path: Path) -> None:
    rows = [Frame(1_700_000_000_000_000_000, data, len(data)) for data in OTHERS[other]]
    _, new, _ = anonymized(tmp_path, pcap(rows, 147 if other == "unknown link" else 1))
    data = new.read_bytes()
    assert b"secret" not in data
    assert not re.search(rb"ame|cre", data.replace(b"kwsniff slice", b""))
    assert ENDS[:4] not in data
    assert len(_blocks(data, "<")) == 3


def test_an_error_quotes_the_addresses_that_the_connection_has(tmp_path: Path) -> None:
    """A SYN, and an ICMP error about it (RFC 792)."""
    syn = ipv4(6, struct.pack(">HHIIBBHHH", 40_000, 9092, 7, 0, 0x50, 2, 100, 0, 0))
    error = ipv4(1, b"\x03\x01\0\0\0\0\0\0" + syn, ends=ENDS[4:] + ENDS[:4])
    rows = [
        Frame(1_700_000_000_000_000_000 + at, OUTER + data, 14 + len(data))
        for at, data in enumerate((syn, error))
    ]
    old, new, names = anonymized(tmp_path, pcap(rows))
    before, after = (analyzed(path)["connections"] for path in (old, new))
    assert (
        [row["icmp_error"] for row in after] == [row["icmp_error"] for row in before] == ["host_unreachable"]
    )
    assert [row["broker_address"] for row in after] == [names[row["broker_address"]] for row in before]


@pytest.mark.parametrize(
    "line", [b"PROXY TCP4 10.1.2.3 10.4.5.66 41000 9092\r\n", b"PROXY UNKNOWN secret-name\r\n"]
)
def test_a_proxy_header_keeps_its_form(line: bytes, tmp_path: Path) -> None:
    head = struct.pack(">HHIIBBHHH", 40_000, 9092, 7, 1, 0x50, 0x18, 100, 0, 0)
    data = OUTER + ipv4(6, head + line)
    _, new, names = anonymized(tmp_path, pcap([Frame(1_700_000_000_000_000_000, data, len(data))]))
    found = re.search(rb"PROXY [^\r]*\r\n", new.read_bytes())
    assert found is not None
    assert len(found[0]) == len(line)
    for old in (b"10.1.2.3", b"10.4.5.66", b"secret"):
        assert old not in found[0]
    if b"TCP4" in line:
        renamed = [names["10.1.2.3"], names["10.4.5.66"], "41000", "9092"]
        assert found[0].split()[2:] == [each.encode() for each in renamed]


def test_the_length_of_a_jumbogram_stays() -> None:
    """RFC 2675: payload length 0, and a hop-by-hop option with the length; other options become padding."""
    segment = struct.pack(">HHIIBBHHH", 50_000, 9092, 1, 1, 5 << 4, 16, 500, 0, 0) + b"secret" * 12_000
    jumbo = b"\xc2\4" + struct.pack(">I", 16 + len(segment))
    extension = b"\6\1" + jumbo + b"\x1e\6secret"
    addresses = ipaddress.ip_address("2001:db8::1").packed + ipaddress.ip_address("2001:db8::2").packed
    packet = struct.pack(">IHBB", 6 << 28, 0, 0, 64) + addresses + extension + segment
    out, found = Packets(Addresses(bytes(32))).rewrite(101, packet)
    assert out[40:48] == b"\6\1" + jumbo
    assert out[48:56] == b"\1\6" + bytes(6)
    assert found is not None
    assert (found.payload, found.size) == (76, 72_000)
    assert b"secret" not in out


@pytest.mark.sample(8)
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_damaged_headers_raise_nothing_and_keep_their_size(wrapping: str) -> None:
    link, wrap = WRAPPINGS[wrapping]
    source, packets = random.Random(wrapping), Packets(Addresses(bytes(32)))
    rows = [wrap(row.data) for row in recorded()[:30]]
    for _ in range(400):
        data = bytearray(source.choice(rows))
        for _ in range(source.randrange(1, 6)):
            data[source.randrange(min(len(data), 110))] = source.choice((0, 1, 8, 127, 128, 255))
        damaged = bytes(data[: source.choice((len(data), source.randrange(len(data))))])
        out, segment = packets.rewrite(link, damaged)
        assert len(out) == len(damaged)
        assert segment is None or 0 <= segment.payload <= segment.payload + segment.size <= len(damaged)


def test_frames_in_frames_end() -> None:
    data = (bytes(12) + b"\x65\x58") * 4000
    out, segment = Packets(Addresses(bytes(32))).rewrite(1, data)
    assert len(out) == len(data)
    assert segment is None
