"""Messages that are cut or damaged: no name gets through where decoding ends."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwsniff.anonymize.messages import Messages
from kwsniff.anonymize.names import Names
from kwsniff.layout.catalog import load_catalog
from kwsniff.limits import Limits
from kwsniff.view.reader import CallReader
from kwsniff.view.selection import Call, Packet

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDINGS = [
    "first_steps", "admin_topics", "transactions", "group_streams", "sasl_scram", "zookeeper_3_9",
    "versions_4_4", "versions_2_8", "large_messages", "replication",
]  # fmt: skip
PUBLIC = load_catalog().names
KEPT = "\n".join((*PUBLIC.words, *PUBLIC.whole, *PUBLIC.settings))
WORD = re.compile(rb"[a-z]{5,}")


def packets(recording: str) -> Iterator[Packet]:
    for call in CallReader([str(CAPTURES / recording / "capture.pcap")], tls_keylog=False).calls():
        yield from call.packets


def hidden(data: bytes) -> set[bytes]:
    return {word for word in WORD.findall(data) if word.decode() not in KEPT}


def replaced(messages: Messages, packet: Packet, data: bytes) -> bytes:
    changed = {**packet, "data": data}
    call = Call(1, changed) if packet["kind"] == "request" else Call(1, None, changed)
    ((_, new),) = messages.replace(call)
    assert len(new) == len(data)
    return new


@pytest.mark.sample(3)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_cut_message_has_no_name(recording: str) -> None:
    messages = Messages(Names(bytes(32), PUBLIC), load_catalog(), Limits())
    source = random.Random(recording)
    tried = 0
    for packet in packets(recording):
        data = packet["data"]
        words = hidden(data)
        for _ in range(6 if words else 0):
            cut = data[: source.randrange(len(data))]
            new = replaced(messages, packet, cut)
            assert not {word for word in words if word in cut and word in new}
            tried += 1
    assert tried > 100


@pytest.mark.sample(3)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_damaged_message_raises_nothing_and_keeps_its_size(recording: str) -> None:
    messages = Messages(Names(bytes(32), PUBLIC), load_catalog(), Limits())
    source = random.Random(recording)
    for packet in packets(recording):
        data = bytearray(packet["data"])
        for _ in range(5):
            data[source.randrange(len(data))] = source.choice((0, 1, 127, 128, 255))
        replaced(messages, packet, bytes(data))
