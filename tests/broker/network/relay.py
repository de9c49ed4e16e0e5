"""A relay of Ethernet frames between pairs of TAP devices, which holds each frame back and drops some.

`python -m tests.broker.network.relay LEFT,RIGHT [LEFT,RIGHT...]` makes the devices, says `ready`, and then
takes lines `LEFT ONE_WAY_MS LOSS [RATE ROOM LARGEST_UP LARGEST_DOWN IDLE_S]` on standard input: from now on
frames of that pair wait ONE_WAY_MS, and the share LOSS of them (0 to 1) is dropped. RATE: bytes per second
that go each way (0: any number), of which ROOM wait in line at most. LARGEST_UP, LARGEST_DOWN: bytes of the
largest IP packet that goes from left to right, and from right to left (0: any). IDLE_S: after a silence as
long, all further packets of a TCP connection are dropped (0: never). ARP is never dropped. Frames of one
direction keep their order.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import selectors
import struct
import sys
import time
from dataclasses import dataclass, field

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
LARGEST_FRAME = 65_600
ETHERNET = 14
ARP, IPV4 = b"\x08\x06", b"\x08\x00"
TCP, SYN = 6, 2
SEED = 20_262


@dataclass
class Pair:
    """Two devices and what lies between them."""

    left: int
    right: int
    one_way_s: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    room: float = 0.0
    largest: tuple[int, int] = (0, 0)
    free_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """When the line of each direction is empty."""
    idle_s: float = 0.0
    spoken: dict[frozenset[bytes], float] = field(default_factory=dict)
    """When the last packet of each TCP connection passed, by its two ends."""

    def change(self, words: list[str]) -> None:
        """The way between both devices is another one now."""
        one_way_ms, loss, rate, room, up, down, idle = [*map(float, words), *[0.0] * 5][:7]
        self.one_way_s, self.loss, self.rate, self.room = one_way_ms / 1000, loss, rate, room
        self.idle_s = idle
        self.largest = int(up), int(down)

    def forgot(self, frame: bytes, now: float) -> bool:
        """Whether its connection was silent too long: a firewall has no entry for it any more."""
        if not self.idle_s or frame[12:14] != IPV4 or frame[23] != TCP:
            return False
        at = ETHERNET + 4 * (frame[ETHERNET] & 15)
        ends = frozenset((frame[26:30] + frame[at : at + 2], frame[30:34] + frame[at + 2 : at + 4]))
        if now - self.spoken.get(ends, now) > self.idle_s and not frame[at + 13] & SYN:
            return True
        self.spoken[ends] = now
        return False

    def due(self, side: int, size: int, now: float) -> float | None:
        """When a frame from that side arrives at the other one; None: it does not."""
        if self.largest[side] and size - ETHERNET > self.largest[side]:
            return None
        if not self.rate:
            return now + self.one_way_s
        begin = max(now, self.free_at[side])
        if (begin - now) * self.rate + size > self.room:
            return None
        self.free_at[side] = begin + size / self.rate
        return self.free_at[side] + self.one_way_s


def opened(name: str) -> int:
    """A new TAP device: no offloads, so that frames are what would be on a cable."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def relay(pairs: dict[str, Pair]) -> None:
    """Until standard input ends."""
    chance = random.Random(SEED)
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    selector = selectors.DefaultSelector()
    for pair in pairs.values():
        selector.register(pair.left, selectors.EVENT_READ, (pair, 0, pair.right))
        selector.register(pair.right, selectors.EVENT_READ, (pair, 1, pair.left))
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    while True:
        patience = None if not waiting else max(0.0, waiting[0][0] - time.monotonic())
        for key, _ in selector.select(patience):
            if key.data is None:
                if not (line := sys.stdin.readline().split()):
                    return
                pairs[line[0]].change(line[1:])
                continue
            pair, side, other = key.data
            for frame in _read(key.fd):
                if pair.forgot(frame, time.monotonic()):
                    continue
                if frame[12:14] == ARP or chance.random() >= pair.loss:
                    number += 1
                    due = pair.due(side, len(frame), time.monotonic())
                    if due is not None:
                        heapq.heappush(waiting, (due, number, other, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, frame = heapq.heappop(waiting)
            _write(device, frame)


def _read(device: int) -> list[bytes]:
    frames = []
    while True:
        try:
            frames.append(os.read(device, LARGEST_FRAME))
        except OSError:  # nothing more, or the device is down
            return frames


def _write(device: int, frame: bytes) -> None:
    try:
        os.write(device, frame)
    except OSError:  # the device is down: lost, as on a cable that was pulled
        return


if __name__ == "__main__":
    made = {}
    for names in sys.argv[1:]:
        left, right = names.split(",")
        made[left] = Pair(opened(left), opened(right))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    relay(made)
