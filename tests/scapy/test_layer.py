"""The scapy layer through scapy's own sniff, against what the brokers of the recordings counted."""

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.traffic.damage import duplicate
from tests.traffic.exchange import Exchange
from tests.traffic.files import frames, pcap
from tests.traffic.groups import join_group, sasl_authenticate, sasl_handshake, sync_group
from tests.traffic.messages import fetch, metadata, produce
from tests.traffic.records import batch
from tests.traffic.scenes import one_by_one, pipelined, vocabulary
from tests.traffic.tcp import Packet as Segment
from tests.traffic.wire import sized

pytest.importorskip("scapy")

from scapy.compat import raw
from scapy.config import conf
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.utils import rdpcap

from kwsniff.scapy_layer import Kafka, bind_kafka, unbind_kafka

CAPTURES = Path(__file__).parents[2] / "captures"
# The mock's log is whole; Kafka's own brokers do not log everything.
NAMES = sorted(
    path.parent.name
    for path in CAPTURES.glob("*/about.toml")
    if "mock" in path.read_text("utf-8") and path.parent.name != "large_messages"
)
TOKEN = b"\0ann\0correct horse battery"


@contextmanager
def bound(*ports: int) -> Iterator[None]:
    bind_kafka(*ports)
    try:
        yield
    finally:
        unbind_kafka(*(port for port in ports if port != 9092))


def kafka_of(path: Path | str) -> list[Kafka]:
    """Every Kafka packet of a capture, those behind each other in one segment one by one."""
    found = []
    for packet in sniff(offline=str(path), session=TCPSession):
        layer = packet.getlayer(Kafka)
        while isinstance(layer, Kafka):
            found.append(layer)
            layer = layer.payload
    return found


def scripted(tmp_path: Path, packets: list[Segment]) -> list[Kafka]:
    path = tmp_path / "scripted.pcap"
    path.write_bytes(pcap(frames(packets)))
    return kafka_of(path)


@pytest.mark.parametrize("name", NAMES)
def test_requests_are_those_the_brokers_counted(name: str) -> None:
    about: dict[str, Any] = tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))
    with bound(*about["broker"]["ports"]):
        packets = kafka_of(CAPTURES / name / about["file"])
    requests = Counter(packet.to_message().api_name for packet in packets if packet.side == "request")
    assert requests == about["requests"]
    for packet in packets:
        if packet.side == "response":
            assert packet.to_message().api_name


def test_every_message_is_that_of_the_script(tmp_path: Path) -> None:
    calls = vocabulary()
    packets = scripted(tmp_path, one_by_one(calls, mss=700).packets())
    expected = [part[4:] for call in calls for part in (call.request, call.response) if part is not None]
    assert [bytes(packet.message) for packet in packets] == expected
    assert [packet.to_message().error for packet in packets] == [None] * len(packets)
    apis = [
        (call.api_key, side) for call in calls for side in (call.request, call.response) if side is not None
    ]
    assert [packet.to_message().api_key for packet in packets] == [key for key, _ in apis]


@pytest.mark.parametrize("mss", [37, 150, 200, 333, 1448])
def test_frames_that_share_or_span_segments_are_told_apart(mss: int, tmp_path: Path) -> None:
    packets = scripted(tmp_path, pipelined(mss=mss).packets())
    ids: dict[str, list[int]] = {"request": [], "response": []}
    for packet in packets:
        message = packet.to_message()
        assert message.error is None
        assert message.api_name == "Produce"
        header = message.as_dict()["header"]
        ids[packet.side].append(header["correlation_id"])
    assert ids == {"request": list(range(100, 120)), "response": list(range(100, 120))}


def test_repeated_segments_are_taken_once(tmp_path: Path) -> None:
    packets = pipelined().packets()
    twice = duplicate(packets, lambda packet: bool(packet.payload), later=1)
    assert len(twice) > len(packets)
    found = scripted(tmp_path, twice)
    ids = [(packet.side, packet.to_message().as_dict()["header"]["correlation_id"]) for packet in found]
    assert sorted(ids) == sorted((side, 100 + call) for side in ("request", "response") for call in range(20))


def test_show_prints_the_tree_that_kwsniff_show_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kwsniff.cli.main import run

    call = metadata(9, 5, ["orders"])
    request, response = scripted(tmp_path, one_by_one([call]).packets())
    assert run(["show", str(tmp_path / "scripted.pcap")]) == 0
    lines = capsys.readouterr().out.splitlines()
    split = next(index for index, line in enumerate(lines) if line.startswith("  response"))
    for packet, part in ((request, lines[3:split]), (response, lines[split + 1 : -1])):
        packet.show()
        shown = capsys.readouterr().out.splitlines()
        assert shown[0].startswith("###[ Kafka Metadata v9 re")
        assert [line.strip() for line in shown[1:] if line.strip()] == [line.strip() for line in part]
        assert packet.show(dump=True).splitlines() == shown[: len(packet.show(dump=True).splitlines())]


def test_a_whole_packet_shows_kafka_below_tcp(tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap(frames(one_by_one([metadata(9, 5, ["orders"])]).packets())))
    (packet, _) = (one for one in sniff(offline=str(path), session=TCPSession) if Kafka in one)
    text = packet.show(dump=True)
    assert text.index("###[ TCP ]###") < text.index("###[ Kafka Metadata v9 request")
    assert "name: 'orders'" in text
    assert packet.summary().endswith(f"Kafka Metadata v9 request, {len(packet[Kafka].message)} bytes")


def test_secrets_and_records_are_hidden(tmp_path: Path) -> None:
    token = Exchange(-1, -1, 0, None, sized(TOKEN), sized(b"ok"))
    calls = [
        sasl_handshake(0, 1, "PLAIN"),
        token,
        sasl_authenticate(1, 2, TOKEN, b""),
        produce(9, 3, {"orders": {0: batch([b"4111111111111111"])}}),
    ]
    packets = scripted(tmp_path, one_by_one(calls).packets())
    assert len(packets) == 8
    shown = "\n".join(packet.show(dump=True) + packet.summary() for packet in packets)
    assert "SASL token, 26 bytes" in shown
    assert "correct horse" not in shown
    assert TOKEN.hex()[:16] not in shown
    assert "4111111111111111" not in shown
    assert packets[4].to_message().as_dict()["body"] == {"auth_bytes": "AGFubgBjb3JyZWN0IGhvcnNlIGJhdHRlcnk="}


def test_responses_know_what_their_request_told(tmp_path: Path) -> None:
    packets = scripted(tmp_path, one_by_one([join_group(5, 1, "g"), sync_group(5, 2, "g")]).packets())
    (inner,) = packets[1].to_message().found_inside().values()
    assert (inner.name, inner.note) == ("ConsumerProtocolSubscription", "")


def test_requests_without_acks_are_not_waited_for(tmp_path: Path) -> None:
    # The same correlation id again: the response is that of the second request.
    calls = [
        produce(7, 5, {"orders": {0: batch([b"x"])}}, acks=0),
        fetch(4, 5, {"orders": {0: batch([b"x"])}}),
    ]
    packets = scripted(tmp_path, one_by_one(calls).packets())
    assert [packet.to_message().api_name for packet in packets] == ["Produce", "Fetch", "Fetch"]


def test_without_a_session_segments_are_frames_and_responses_stay_closed(tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap(frames(one_by_one([metadata(9, 5, ["orders"])]).packets())))
    request, response = (packet[Kafka] for packet in rdpcap(str(path)) if Kafka in packet)
    assert request.to_message().api_name == "Metadata"
    assert response.side == "response"
    assert response.to_message().as_dict()["header"] == {"correlation_id": 5}
    assert "unknown_api" in response.show(dump=True)


def test_a_packet_can_be_built_copied_and_read_back() -> None:
    message = metadata(9, 5, ["orders"]).request[4:]
    packet = IP() / TCP(sport=50_000, dport=9092) / Kafka(message=message)
    again = IP(raw(packet))
    assert again[Kafka].length == len(message)
    assert again[Kafka].copy().to_message().as_dict() == again[Kafka].to_message().as_dict()
    assert again[Kafka].to_message().api_name == "Metadata"


def test_ports_are_bound_and_unbound() -> None:
    def layer(port: int) -> type[Packet]:
        return TCP(sport=50_000, dport=port).guess_payload_class(b"\0\0\0\0")

    assert layer(9092) is Kafka
    assert layer(19_092) is conf.raw_layer
    with bound(19_092):
        assert layer(19_092) is Kafka
    assert layer(19_092) is conf.raw_layer


@pytest.mark.parametrize(
    "payload",
    [b"", b"\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff" + bytes(60), b"GET / HTTP/1.1\r\n", bytes(40)],
)
def test_bytes_that_are_no_kafka_do_no_harm(payload: bytes, tmp_path: Path) -> None:
    calls = [Exchange(-1, -1, 0, None, payload, payload), metadata(9, 5, ["orders"])]
    for packet in scripted(tmp_path, one_by_one(calls).packets()):
        packet.show(dump=True)
        packet.summary()


def test_scapy_is_imported_by_nothing_else() -> None:
    script = (
        "import sys, kwsniff.cli.main, kwsniff.view.call, kwsniff.cli.show\n"
        "kwsniff.cli.main.make_parser()\n"
        "print('scapy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
