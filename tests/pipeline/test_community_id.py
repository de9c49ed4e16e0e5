"""`connections.community_id` is the Community ID by which others name the flow."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

import kwsniff

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def ids(capture: Path) -> list[str]:
    return sorted(kwsniff.analyze(capture, tables=["connections"]).connections["community_id"].to_pylist())


def by_hand(source: str, source_port: int, destination: str, destination_port: int) -> str:
    """Corelight's specification, version 1, with seed 0."""
    ends = sorted(
        (ipaddress.ip_address(address).packed, port)
        for address, port in ((source, source_port), (destination, destination_port))
    )
    (low, low_port), (high, high_port) = ends
    flow = struct.pack(">H", 0) + low + high + struct.pack(">BBHH", 6, 0, low_port, high_port)
    return "1:" + base64.b64encode(hashlib.sha1(flow, usedforsecurity=False).digest()).decode()


def one_packet(tmp_path: Path, network: Packet, *ports: int) -> Path:
    path = tmp_path / "one.pcap"
    wrpcap(str(path), [Ether() / network / TCP(sport=ports[0], dport=ports[1], flags="S")])
    return path


def test_the_example_of_the_specification(tmp_path: Path) -> None:
    capture = one_packet(tmp_path, IP(src="128.232.110.120", dst="66.35.250.204"), 34855, 80)
    assert ids(capture) == ["1:LQU9qZlK+B5F3KDmev6m5PMibrg="]


@pytest.mark.parametrize(
    ("source", "source_port", "destination", "destination_port"),
    [
        ("10.0.0.9", 9092, "10.0.0.10", 40000),
        ("10.0.0.1", 9092, "10.0.0.1", 256),  # in the order of bytes, not of texts
        ("255.255.255.255", 65535, "0.0.0.1", 1),
        ("fe80::1", 9092, "2001:db8::1", 50000),
        ("::1", 1, "::1", 2),
        ("::ffff:0:0:1", 1, "::2", 2),
    ],
)
def test_endpoints_are_in_order(
    tmp_path: Path, source: str, source_port: int, destination: str, destination_port: int
) -> None:
    network = (IPv6 if ":" in source else IP)(src=source, dst=destination)
    capture = one_packet(tmp_path, network, source_port, destination_port)
    assert ids(capture) == [by_hand(source, source_port, destination, destination_port)]


@needs_tshark
@pytest.mark.parametrize("name", ["first_steps", "three_brokers", "any_interface", "group_classic"])
def test_tshark_names_the_same_flows(name: str) -> None:
    (capture,) = (CAPTURES / name).glob("capture.pcap*")
    command = ["tshark", "--enable-protocol", "communityid", "-r", str(capture), "-Y", "tcp", "-T", "fields"]
    done = subprocess.run(
        [*command, "-e", "tcp.stream", "-e", "communityid"], capture_output=True, text=True, check=True
    )
    streams = dict(line.split("\t") for line in done.stdout.splitlines())
    assert ids(capture) == sorted(streams.values())
