"""Conversations made up by a dice: proxies in front of Kafka, and acknowledgements of every kind."""

import random
import struct
from collections.abc import Callable
from ipaddress import ip_address

from tests.core.hand import ACK, FIN, PSH, RST, START_NS, SYN, Talk, request, response, sack
from tests.hostile import mutate
from tests.traffic.files import Frame, pcap

Said = list[tuple[bool, bytes]]
_MAGIC = b"\r\n\r\n\x00\r\nQUIT\n"


def preamble(dice: random.Random) -> Said:
    """Any number of PROXY headers and tunnels, each as its protocol has it."""
    said: Said = []
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        said += dice.choice((_proxy_text, _proxy_binary, _socks, _connect))(dice)
    return said


def _proxy_text(dice: random.Random) -> Said:
    line = dice.choice(
        (b"TCP4 192.0.2.7 192.0.2.8 41000 9092", b"TCP6 ::1 ::2 1 65535", b"UNKNOWN", b"TCP4 ")
    )
    return [(True, b"PROXY " + line + b"\r\n")]


def _proxy_binary(dice: random.Random) -> Said:
    family, size = dice.choice(((0x11, 12), (0x21, 36), (0x31, 216), (0, 0)))
    more = dice.randbytes(dice.choice((0, 5, 40, 300, 9_000)))
    head = struct.pack(">BBH", dice.choice((0x20, 0x21, 0x11)), family, size + len(more))
    return [(True, _MAGIC + head + dice.randbytes(size) + more)]


def _socks(dice: random.Random) -> Said:
    end = dice.choice(
        (
            b"\x01" + ip_address("192.0.2.8").packed,
            b"\x04" + ip_address("2001:db8::8").packed,
            b"\x03\x06broker",
            b"\x03\x00",
        )
    ) + struct.pack(">H", 9092)
    word = dice.choice((0, 0, 2, 0xFF, 7))
    said: Said = [(True, b"\x05\x02\x00\x02"), (False, bytes([5, word]))]
    if word == 2:
        said += [(True, b"\x01\x05alice\x06secret"), (False, bytes([1, dice.choice((0, 0, 1))]))]
    kind = dice.choice((1, 1, 1, 2, 3))
    return [*said, (True, bytes([5, kind, 0]) + end), (False, bytes([5, dice.choice((0, 0, 5)), 0]) + end)]


def _connect(dice: random.Random) -> Said:
    fields = b"".join(b"X: %s\r\n" % (b"y" * dice.randrange(90)) for _ in range(dice.choice((0, 2, 120))))
    status = dice.choice((b"200 OK", b"200 OK", b"407 No", b"2"))
    return [
        (True, b"CONNECT broker:9092 HTTP/1.1\r\n" + fields + b"\r\n"),
        (False, b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n"),
    ]


def carried(dice: random.Random) -> list[bytes]:
    """Packets of calls behind a preamble: damaged, and cut anywhere."""
    said = preamble(dice)
    if dice.random() < 0.6:
        at = dice.randrange(len(said)) if said else 0
        said[at : at + 1] = [
            (side, bytes(mutate.damaged_bytes(dice, data, 2))) for side, data in said[at : at + 1]
        ]
    for number in range(dice.randrange(5)):
        said += [(True, request(number)), (False, response(number))]
    talk = Talk()
    if dice.random() < 0.7:
        talk.open()
    for from_client, data in said:
        step = dice.choice((1, 2, 7, 60, 10_000)) if len(data) < 600 else dice.choice((100, 1_400))
        for at in range(0, len(data), step):
            kept = dice.random() > 0.01
            talk.send(from_client, data[at : at + step], dice.choice((ACK, ACK, ACK | PSH)), keep=kept)
    if dice.random() < 0.3:
        talk.send(dice.random() < 0.5, flags=dice.choice((FIN | ACK, RST, RST | ACK)))
    return talk.packets


def acknowledged(dice: random.Random) -> list[bytes]:
    """Packets of calls with retransmissions, closed windows, resets, and options, true, odd or broken."""
    talk = Talk(dice.choice((999, 2**32 - 40, 2**31 - 40)), dice.choice((4_999, 2**32 - 9)))
    if dice.random() < 0.8:
        talk.open()
    for number in range(dice.randrange(2, 40)):
        side = dice.random() < 0.5
        kind = dice.randrange(10)
        at = talk.next[side] + dice.choice((0, 0, -1, 5, -14, 20, 70_000, -(1 << 30), 1 << 31))
        if kind < 4:
            talk.send(side, request(number) if side else response(number), keep=dice.random() < 0.8)
        elif kind == 4:
            talk.send(side, dice.randbytes(dice.choice((1, 14, 2_000))), seq=at)
        elif kind == 5:
            talk.send(side, flags=dice.choice((SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, ACK)), seq=at)
        else:
            options = _options(dice, talk.next[not side])
            ack = talk.next[not side] - dice.choice((0, 0, 14, 60, 1 << 31))
            talk.send(side, b"" if kind < 9 else response(number), ack=ack, options=options)
        if dice.random() < 0.1:
            packet = bytearray(talk.packets[-1]) if talk.packets else bytearray(40)
            packet[34:36] = dice.choice((b"\0\0", b"\0\1"))  # the window
            talk.packets.append(bytes(packet))
    return [
        bytes(mutate.damaged_bytes(dice, packet, 1)) if dice.random() < 0.03 else packet
        for packet in talk.packets
    ]


def _options(dice: random.Random, near: int) -> bytes:
    blocks = []
    for _ in range(dice.choice((0, 1, 1, 2, 3, 4))):
        start = near + dice.choice((0, -14, 14, 28, 1_000, -(1 << 30), 1 << 30, 1 << 31)) + dice.randrange(20)
        blocks.append((start, start + dice.choice((0, 1, 14, 5_000, -3, 1 << 30, (1 << 32) - 1))))
    made = sack(*blocks) if blocks else b""
    if dice.random() < 0.3 and len(blocks) < 4:
        made = b"\1\1\x08\x0a" + dice.randbytes(8) + made
    if dice.random() < 0.2:
        made = bytes(mutate.damaged_bytes(dice, made, 2))
    return (made + bytes(-len(made) % 4))[:40]


def capture_of(packets: list[bytes], dice: random.Random) -> bytes:
    step = dice.choice((0, 1_000, 10**6, 10**10))
    return pcap([Frame(START_NS + at * step, each, len(each)) for at, each in enumerate(packets)], 101)


Make = Callable[[random.Random], list[bytes]]
"""What makes a conversation."""
