"""Connections by hand, and a healthy client of the same broker beside them: captures that rules judge."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import kwsniff
from tests.traffic import files, messages
from tests.traffic.hello import client_hello, records, server_hello
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene, Script
from tests.traffic.wire import sized

BROKER = Endpoint("10.1.0.92", 9092)
CLIENT = "10.1.0.7"
SECOND = 1000 * MILLISECOND
CLOSING, OPEN, RESET = "close", "open", "reset"


def request(key: int, version: int, number: int, body: bytes = b"", name: bytes = b"shop") -> bytes:
    return sized(struct.pack(">hhih", key, version, number, len(name)) + name + body)


def versions(number: int, **offered: tuple[int, int]) -> bytes:
    """ApiVersions v0's answer (ApiVersionsResponse.json); `k3=(0, 8)`: of API 3 versions 0 to 8."""
    spans = {int(name[1:]): span for name, span in offered.items()} | {18: (0, 4)}
    listed = b"".join(struct.pack(">hhh", key, *span) for key, span in sorted(spans.items()))
    return sized(struct.pack(">ihi", number, 0, len(spans)) + listed)


ASK = request(18, 0, 1)


class Stage:
    """Connections one after the other, and a healthy client of the same broker beside them."""

    def __init__(self, folder: Path, *, neighbour: bool = True) -> None:
        self.path = folder / "capture.pcap"
        self._judged: dict[bytes, list[dict[str, Any]]] = {}
        self.scene = Scene()
        if neighbour:
            script = self.scene.connection(Endpoint("10.1.0.8", 60_000), BROKER)
            script.open()
            for number in range(1, 30):
                at = number * 200 * MILLISECOND
                only = messages.api_versions(0, number, supported=[(18, 0, 4)])
                script.call(only, at=at, answer_at=at + MILLISECOND)
            script.close(at=7 * SECOND)

    def talk(
        self,
        *said: bytes | tuple[bytes],
        at: int = 0,
        broker: Endpoint = BROKER,
        end: str = CLOSING,
        by_client: bool = False,
        address: str = CLIENT,
        port: int = 0,
    ) -> Script:
        """One connection: bytes are the client's, a tuple's are the broker's; then someone ends it."""
        client = Endpoint(address, port or 50_000 + len(self.scene.scripts))
        script = self.scene.connection(client, broker)
        script.open(at=at)
        moment = at + MILLISECOND
        for each in said:
            moment += MILLISECOND
            data, from_client = (each[0], False) if isinstance(each, tuple) else (each, True)
            script.write(data, moment, from_client=from_client)
        if end == RESET:
            script.reset(moment + 2 * MILLISECOND, from_client=by_client)
        elif end == CLOSING:
            script.close(moment + 2 * MILLISECOND, from_client=by_client)
        return script

    def found(self) -> list[tuple[str, str, str, str]]:
        """Problems and warnings: name, confidence, who has to act, subject."""
        return [
            (row["finding"], row["confidence"], row["blames"], row["subject"])
            for row in self.rows()
            if row["severity"] != "info"
        ]

    def rows(self) -> list[dict[str, Any]]:
        """All findings; of the same packets they are found once."""
        packets = self.write().read_bytes()
        if packets not in self._judged:
            self._judged[packets] = kwsniff.analyze(self.path).findings.to_pylist()
        return self._judged[packets]

    def write(self) -> Path:
        """The capture of what was said so far."""
        self.path.write_bytes(files.pcap(files.frames(self.scene.packets())))
        return self.path


def at(*numbers: int) -> list[int]:
    return [number * 500 * MILLISECOND for number in numbers]


# -- TLS: the client's first flight, the broker's, and what follows
HELLO = records(client_hello())
FLIGHT = records(server_hello()) + b"\x14\x03\x03\0\1\1" + b"\x17\x03\x03\x03\x84" + bytes(900)
FINISHED = b"\x17\x03\x03\0\x35" + bytes(53)
TICKET = b"\x17\x03\x03\0\xef" + bytes(239)


def sealed(length: int) -> bytes:
    return b"\x17\x03\x03" + struct.pack(">H", length) + bytes(length)


def alert(description: int) -> bytes:
    return bytes([21, 3, 3, 0, 2, 2, description])


TLS = Endpoint("10.1.0.92", 9093)
