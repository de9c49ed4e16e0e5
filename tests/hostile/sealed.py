"""Scripted connections inside TLS, sealed by a cipher that is none: seeds without cryptography.

A record is its plaintext, a type and a tag that says whether number, header and contents are the true ones;
the handshake is two hellos, then both sides send data. `Secrets` opens them; every byte can be damaged.
"""

from __future__ import annotations

import hashlib
import random
import struct
from dataclasses import dataclass, field
from typing import Any

from tests.traffic.hello import client_hello, records, server_hello
from tests.traffic.tcp import MICROSECOND, Packet, Scene, Script

TAG = 16
LARGEST = 16_384
FINISHED = b"\x14\0\0\x20" + bytes(32)
RANDOM, CIPHER = b"r" * 32, 0x1301
KEY_UPDATE = b"\x18\0\0\1\0"


def _tag(key: bytes, nonce: bytes, data: bytes, more: bytes) -> bytes:
    return hashlib.blake2b(nonce + more + data, digest_size=TAG, key=key).digest()


class Secrets:
    """What opens the records of `sealed`. `late`: once `come` was called; `guesses`: without a hello, too."""

    def __init__(self, *, late: bool = False, guesses: bool = False) -> None:
        self.guesses = guesses
        self.may_come = late
        self.version = 0 if late else 1
        self.taken: list[bytes] = []

    def come(self) -> None:
        self.version += 1

    def add_keylog(self, text: bytes) -> None:
        self.taken.append(text)

    def find(self, hellos: Any, side: int, epoch: int) -> Any:
        return _opener(side, epoch) if self.version else None

    def guess(self, hellos: Any, sides: Any, claimed: Any = None) -> Any:
        if claimed is not None or not self.guesses or not self.version:
            return []
        return [
            (RANDOM, CIPHER, 0x0304, side, epoch, _opener(side, epoch)) for side in sides for epoch in (0, 1)
        ]


def _opener(side: int, epoch: int) -> Any:
    def decrypt(nonce: bytes, data: Any, more: bytes) -> bytes:
        sealed = bytes(data)
        if len(sealed) < TAG or _tag(_key(side, epoch), nonce, sealed[:-TAG], more) != sealed[-TAG:]:
            raise ValueError
        return sealed[:-TAG]

    return "1.3", decrypt, bytes(12), TAG + 1


def _key(side: int, epoch: int) -> bytes:
    return bytes((side, min(epoch, 255)))


@dataclass
class _Side:
    side: int
    epoch: int = 0
    number: int = 0
    dice: random.Random = field(default_factory=random.Random)

    def record(self, plain: bytes, kind: int = 23) -> bytes:
        inner = plain + bytes((kind,)) + bytes(self.dice.randrange(3) if kind != 23 else 0)
        header = b"\x17\x03\x03" + struct.pack(">H", len(inner) + TAG)
        sealed = inner + _tag(_key(self.side, self.epoch), self.number.to_bytes(12, "big"), inner, header)
        self.number += 1
        return header + sealed

    def turn(self, message: bytes) -> bytes:
        """A message behind which the next keys are used."""
        last = self.record(message, 22)
        self.epoch, self.number = self.epoch + 1, 0
        return last


def sealed(scene: Scene, largest: int = LARGEST, *, updates: int = 0) -> list[Packet]:
    """The scene's packets with records in the place of what is said. `updates`: key updates per side."""
    out = Scene()
    for script in scene.scripts:
        out.scripts.append(_script(script, largest, updates))
    return out.packets()


def _script(script: Script, largest: int, updates: int) -> Script:
    isns = [script._sides[side].isn for side in (True, False)]
    out = Script(
        script.number, script.client, script.broker, mss=script.mss, client_isn=isns[0], broker_isn=isns[1]
    )
    for at, _, from_client, flags in script._controls:
        out._control(at, from_client, flags)
    for from_client, hello in ((True, client_hello()), (False, server_hello())):
        side = _Side(0 if from_client else 1, dice=random.Random(largest))
        first = 300 * MICROSECOND + (0 if from_client else 10 * MICROSECOND)
        later = first + 20 * MICROSECOND
        out.write(records(hello), first, from_client=from_client)
        out.write(side.turn(FINISHED), later, from_client=from_client)
        for number, (at, _, data) in enumerate(script._sides[from_client].writes):
            parts = [data[start : start + largest] for start in range(0, len(data), largest)]
            said = b"".join(side.record(part) for part in parts)
            if number < updates:
                said += side.turn(KEY_UPDATE)
            out.write(said, max(at, later), from_client=from_client)
    return out
