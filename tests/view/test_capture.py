"""Calls from captures that are damaged in any way: drawn in every form, without complaint."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from kwsniff.view.call import Conversation, Drawing
from kwsniff.view.reader import CallReader
from tests.traffic.damage import drop
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import one_by_one, two_clients, vocabulary
from tests.traffic.tcp import Packet

CAPTURES = Path(__file__).parents[2] / "captures"


def drawn(path: Path, **how: bool) -> list[str]:
    """Every call of a capture as text, as JSON and as a hexdump."""
    conversation, shown = Conversation(), []
    for call in CallReader([str(path)]).calls():
        decoded = conversation.decode(call)
        shown += decoded.lines(Drawing(**how))
        shown += decoded.lines(Drawing(hexdump=True, **how))
        shown += [json.dumps(one) for one in decoded.documents(Drawing(**how))]
    return shown


def statuses(path: Path, packets: list[Packet]) -> Counter[tuple[str | None, str | None]]:
    path.write_bytes(pcap(frames(packets)))
    return Counter((call.status, call.reason) for call in CallReader([str(path)]).calls())


@pytest.mark.parametrize(
    "name", ["first_steps/capture.pcap", "transaction/capture.pcap", "aiokafka/capture.pcap"]
)
@pytest.mark.parametrize("seed", range(25))
def test_flipped_bytes_change_what_is_shown_and_nothing_else(name: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{name} {seed}")
    data = bytearray((CAPTURES / name).read_bytes())
    for _ in range(chance.choice([1, 30, 300])):
        data[chance.randrange(24, len(data))] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
    path = tmp_path / "flipped.pcap"
    path.write_bytes(data)
    drawn(path, payload=bool(seed & 1), secrets=bool(seed & 2))


def test_every_message_of_the_script_is_there_and_says_how_it_ended(tmp_path: Path) -> None:
    found = statuses(tmp_path / "all.pcap", two_clients().packets())
    assert found == {("answered", None): 9, ("no_response_expected", None): 1}


def test_a_lost_response_leaves_its_request(tmp_path: Path) -> None:
    packets = one_by_one(vocabulary()[:5]).packets()
    answers = [index for index, packet in enumerate(packets) if packet.payload and not packet.from_client]
    found = statuses(tmp_path / "lost.pcap", drop(packets, {answers[2]}))
    assert found["answered", None] == 4
    assert sum(found.values()) == 5


def test_a_response_whose_request_was_lost_is_shown_alone_and_closed(tmp_path: Path) -> None:
    packets = one_by_one(vocabulary()[:6]).packets()
    asked = [index for index, packet in enumerate(packets) if packet.payload and packet.from_client]
    path = tmp_path / "lost.pcap"
    path.write_bytes(pcap(frames(drop(packets, {asked[3]}))))
    shown = [line for line in drawn(path) if line.startswith(("call ", "response of"))][::2]
    assert len(shown) == 6
    # The fourth call of the vocabulary has correlation id 4.
    assert shown[3].startswith("response of an unknown request: correlation id 4, ")
    assert shown[3].endswith(", response only")
    closed = next(call for call in CallReader([str(path)]).calls() if call.id is None)
    (document,) = Conversation().decode(closed).documents(Drawing())
    assert document["header"] == {"correlation_id": 4}
    assert (document["body"], document["api_key"], document["kind"]) == (None, None, "unexpected_response")


def test_memory_of_the_reader_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "all.pcap"
    path.write_bytes(pcap(frames(one_by_one(vocabulary()).packets())))
    reader = CallReader([str(path)])
    calls = list(reader.calls())
    assert len(calls) == len(vocabulary())
    assert not reader._analyzer.drain_messages(b"")
