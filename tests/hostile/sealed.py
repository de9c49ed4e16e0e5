"""Scripted connections as if inside TLS, and what a decryptor would say of them: seeds without cryptography.

The records hold noise; their plaintext comes beside the packets, as pieces (Analyzer.decrypt), so that every
number in both can be damaged on its own.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.traffic.hello import client_hello, records, server_hello
from tests.traffic.tcp import MICROSECOND, Packet, Scene, Script

OVERHEAD = 22  # header, tag and content type of a TLS 1.3 record
LARGEST = 16_384

Piece = tuple[int, list[tuple[int, int, int]], bytes]
"""Frame from 1, its records (length with header, plain bytes, bytes not decrypted), their plaintext."""


@dataclass
class _Side:
    sizes: list[tuple[int, bytes]] = field(
        default_factory=list
    )  # record by record: its length, its plaintext
    come: int = 0
    passed: int = 0

    def record(self, noise: random.Random, plain: bytes) -> bytes:
        body = noise.randbytes(len(plain) + OVERHEAD - 5)
        self.sizes.append((len(body) + 5, plain))
        return b"\x17\x03\x03" + struct.pack(">H", len(body)) + body

    def hello(self, data: bytes) -> bytes:
        self.sizes.append((len(data), b""))
        return data


def sealed(scene: Scene, largest: int = LARGEST) -> tuple[list[Packet], list[Piece]]:
    """The scene's packets with records in the place of what is said, and the pieces of the whole capture."""
    noise = random.Random(largest)
    out = Scene()
    sides: dict[tuple[int, bool], _Side] = {}
    for script in scene.scripts:
        out.scripts.append(_script(script, noise, sides, largest))
    packets = out.packets()
    return packets, list(_pieces(packets, sides))


def _script(
    script: Script, noise: random.Random, sides: dict[tuple[int, bool], _Side], largest: int
) -> Script:
    isns = [script._sides[side].isn for side in (True, False)]
    out = Script(
        script.number, script.client, script.broker, mss=script.mss, client_isn=isns[0], broker_isn=isns[1]
    )
    for at, _, from_client, flags in script._controls:
        out._control(at, from_client, flags)
    for from_client, hello in ((True, client_hello()), (False, server_hello())):
        side = sides[script.number, from_client] = _Side()
        first = 300 * MICROSECOND + (0 if from_client else 10 * MICROSECOND)
        out.write(side.hello(records(hello)), first, from_client=from_client)
        for at, _, data in script._sides[from_client].writes:
            parts = [data[start : start + largest] for start in range(0, len(data), largest)]
            said = b"".join(side.record(noise, part) for part in parts)
            out.write(said, max(at, first), from_client=from_client)
    return out


def _pieces(packets: Sequence[Packet], sides: dict[tuple[int, bool], _Side]) -> list[Piece]:
    found: list[Piece] = []
    for frame, packet in enumerate(packets, start=1):
        side = sides[packet.connection, packet.from_client]
        side.come = max(side.come, packet.end)
        done: list[tuple[int, int, int]] = []
        plain = b""
        while side.sizes and side.passed + side.sizes[0][0] <= side.come:
            length, text = side.sizes.pop(0)
            side.passed += length
            done.append((length, len(text), 0))
            plain += text
        if done:
            found.append((frame, done, plain))
    return found


def packed(pieces: Sequence[Piece]) -> bytes:
    """Pieces as Analyzer.decrypt() takes them."""
    return b"".join(
        struct.pack("=QII", frame, len(done), len(plain))
        + b"".join(struct.pack("=III", *record) for record in done)
        + plain
        for frame, done, plain in pieces
    )
