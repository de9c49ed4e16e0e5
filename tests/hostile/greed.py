"""Captures that ask for as much memory as they can, in few bytes: a generator for each thing that grows.

Each takes a number and gives packets; what they have in common is small, and compresses well. `python -m
tests.hostile.greed [NAME ...] [--bytes N]` says what `kwsniff analyze` takes for them.
"""

import argparse
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

from tests.hostile.flood import HEADER, handshake, packet, stream
from tests.perf.measure import Measured, process
from tests.traffic import groups as groups_of_traffic
from tests.traffic import messages
from tests.traffic.messages import Exchange
from tests.traffic.wire import request_bytes, response_bytes, sized

LONG: Final = 32_000
"""Bytes of a long name: a classic string has at most 32,767."""

Packets = Iterator[bytes]


class Line:
    """One connection, from its handshake on. `piece`: bytes of a segment at most."""

    def __init__(self, number: int = 0, piece: int = 60_000) -> None:
        self.piece = piece
        self.client, self.port = 1 + number // 50_000, 1024 + number % 50_000
        self.sent = [0, 0]

    def open(self) -> bytes:
        """The handshake."""
        return handshake(self.client, self.port)

    def say(self, data: bytes, *, back: bool = False) -> bytes:
        """Packets of one direction, which acknowledge all of the other."""
        packets = b"".join(
            stream(
                data, self.sent[back], client=self.client, port=self.port, back=back,
                ack=1 + self.sent[not back], mss=self.piece,
            )
        )  # fmt: skip
        self.sent[back] += len(data)
        return packets

    def talk(self, call: Exchange) -> bytes:
        """A request and its response."""
        return self.say(call.request) + self.say(call.response or b"", back=True)


def name(number: int, size: int = LONG) -> str:
    """A text that is not like any other."""
    return f"{number:010}".ljust(size, "x")


def beat(number: int, client: str, group: str, member: str) -> Exchange:
    """A heartbeat."""
    texts = [each.encode() for each in (group, member)]
    body = b"\0\0\0\1".join(struct.pack(">h", len(each)) + each for each in texts)
    request = sized(request_bytes(12, 0, number, client, body))
    return Exchange(12, 0, number, client, request, sized(response_bytes(12, 0, number, b"\0\0")))


def client_ids() -> Packets:
    """Heartbeats of one connection, each with a client id of its own."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.talk(beat(number, name(number), "g", "m"))


def groups() -> Packets:
    """Heartbeats of members and groups that nobody named before."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.talk(beat(number, "c", name(2 * number), name(2 * number + 1)))


def connections() -> Packets:
    """Connections that stay open, each with a client id of its own and a request that waits."""
    for number in count():
        line = Line(number)
        yield line.open() + line.talk(beat(1, name(number), "g", "m"))
        yield line.say(beat(2, "c", name(number), "m").request)


def small_connections() -> Packets:
    """Connections that stay open after one small call."""
    for number in count():
        line = Line(number)
        yield line.open() + line.talk(beat(1, "c", "g", "m"))


def half_open() -> Packets:
    """A SYN and nothing else."""
    for number in count():
        yield packet(1 + number // 50_000, 1024 + number % 50_000, flags=2)


def stray_answers() -> Packets:
    """Responses without requests, which wait for them."""
    for number in count():
        line = Line(number)
        yield line.open() + line.talk(beat(1, "c", "g", "m"))
        yield line.say(sized(struct.pack(">i", 7) + bytes(60)), back=True)


def frames() -> Packets:
    """Frames that are begun in connection after connection."""
    for number in count():
        line = Line(number)
        yield line.open() + line.talk(beat(1, "c", "g", "m"))
        yield line.say(struct.pack(">i", 400 << 20) + request_bytes(0, 9, 2, "c", bytes(60_000))[:60_000])


def gaps() -> Packets:
    """Segments behind holes."""
    for number in count():
        line = Line(number)
        yield line.open()
        for piece in range(40):
            yield packet(line.client, line.port, bytes(1000), seq=2000 + 2000 * piece, ack=1)


def sessions() -> Packets:
    """Fetch sessions of many partitions, asked again and again in a few bytes."""
    for number in count():
        line = Line(number)
        parts = {name(topic, 200): dict.fromkeys(range(100), b"") for topic in range(40)}
        yield line.open() + line.talk(messages.fetch(12, 1, parts, session=(0, 0), opened=7, news={}))
        for epoch in range(1, 200):
            yield line.talk(messages.fetch(12, epoch + 1, {}, session=(7, epoch), opened=7, news={}))


def partitions() -> Packets:
    """Requests that name many partitions, and answers that name none."""
    line = Line()
    yield line.open()
    for number in count():
        parts = dict.fromkeys(range(600), b"")
        yield line.talk(messages.fetch(12, number, {name(number, 200): parts}, news={}))


def topics() -> Packets:
    """Metadata of topics that nobody named before, with ids and leaders."""
    line = Line()
    yield line.open()
    for number in count():
        asked = [name(500 * number + each, 100) for each in range(500)]
        yield line.talk(messages.metadata(12, number, asked))


def errors() -> Packets:
    """Responses that are error after error, in topics with long names."""
    line = Line()
    yield line.open()
    for number in count():
        group = b"\0\1g" + struct.pack(">i", 1) + b"\0\1m" + struct.pack(">qi", -1, 0)
        yield line.say(sized(request_bytes(8, 2, number, "c", group)))
        topic = name(number).encode()
        body = (
            struct.pack(">ih", 1, len(topic))
            + topic
            + struct.pack(">i", 9000)
            + struct.pack(">ih", 7, 3) * 9000
        )
        yield line.say(sized(response_bytes(8, 2, number, body)), back=True)


def large_frames() -> Packets:
    """Responses of 60 MB that name texts which are no UTF-8."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.say(sized(request_bytes(3, 1, number, "c", struct.pack(">i", -1))))
        topic = b"".join(
            struct.pack(">hh", 3, LONG) + struct.pack(">i", each) + b"\xff" * (LONG - 4) + b"\0" + bytes(4)
            for each in range(1800)
        )
        yield line.say(
            sized(response_bytes(3, 1, number, bytes(8) + struct.pack(">i", 1800) + topic)), back=True
        )


def cells() -> Packets:
    """Requests of millions of fields."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.say(
            sized(request_bytes(3, 1, number, "c", struct.pack(">i", 9_000_000) + bytes(18_000_000)))
        )


def _later(record: bytes, nanoseconds: int) -> bytes:
    """A packet's record with another time."""
    return struct.pack("<II", *divmod(nanoseconds, 10**9)) + record[8:]


def held_waits() -> Packets:
    """Produce that takes long and asks for all followers: its row waits for what these say."""
    line = Line()
    yield line.open()
    for number in count():
        call = messages.produce(9, number, {name(number, 20_000): {0: b""}}, client_id=name(number))
        begun = 10**9 + 100_000 * number
        yield _later(line.say(call.request), begun)
        yield _later(line.say(call.response or b"", back=True), begun + 5_000_000)


def versions() -> Packets:
    """Brokers that offer ranges of versions that nobody offered before."""
    for number in count():
        line = Line(number)
        offered = [(key, number % 100, 100 + number % 7000) for key in range(1000)]
        yield line.open() + line.talk(messages.api_versions(3, 1, supported=offered))


def long_topics() -> Packets:
    """Produce to topics that nobody named before."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.talk(messages.produce(9, number, {name(number): {0: b""}}))


def long_groups() -> Packets:
    """Groups that nobody named before, and one member of each, who joins."""
    line = Line()
    yield line.open()
    for number in count():
        yield line.talk(groups_of_traffic.join_group(5, number, name(number)))


def leaders() -> Packets:
    """Metadata whose leaders change with every response."""
    line = Line()
    yield line.open()
    for number in count():
        asked = [name(each, 100) for each in range(250)]
        yield line.talk(messages.metadata(12, number, asked, leader=number, epoch=number, partitions=10))


def long_partitions() -> Packets:
    """Fetches of a topic with a long name in many partitions, answered for another one that begins alike."""
    line = Line()
    yield line.open()
    for number in count():
        asked = messages.fetch(11, number, {name(1): dict.fromkeys(range(400), b"")}, news={})
        other = name(1)[:-1] + "y"
        answered = messages.fetch(11, number, {other: dict.fromkeys([7] * 400 + [*range(400)], b"")})
        yield line.say(asked.request) + line.say(answered.response or b"", back=True)


GENERATORS: Final[dict[str, Callable[[], Packets]]] = {
    each.__name__: each
    for each in (
        client_ids, groups, connections, small_connections, half_open, stray_answers, frames, gaps, sessions,
        partitions, topics, errors, large_frames, cells, held_waits, versions, leaders, long_partitions,
        long_topics, long_groups,
    )
}  # fmt: skip


def write(path: Path, generator: str, size: int) -> None:
    """A capture of about so many bytes."""
    with path.open("wb") as file:
        left = size - file.write(HEADER)
        for data in GENERATORS[generator]():
            left -= file.write(data)
            if left <= 0:
                return


def analyze(capture: Path, output: Path, *options: str) -> Measured:
    """`kwsniff analyze`, in a process of its own."""
    program = Path(sys.executable).with_name("kwsniff")
    command = (str(program), "analyze", str(capture), "-o", str(output / "tables"), *options)
    return process(command, output / "out")


def main() -> int:
    """Prints a line for each generator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", default=list(GENERATORS), metavar="NAME")
    parser.add_argument("--bytes", type=int, default=100_000_000)
    options = parser.parse_args()
    for generator in options.name:
        with tempfile.TemporaryDirectory(prefix="kwsniff-greed-") as folder:
            capture = Path(folder, "capture.pcap")
            write(capture, generator, options.bytes)
            found = analyze(capture, Path(folder))
            size = capture.stat().st_size
            packed = len(subprocess.run(["gzip", "-c1", capture], capture_output=True, check=True).stdout)
        sys.stdout.write(
            f"{generator:18} {size / 1e6:6.1f} MB ({packed / 1e6:6.2f} packed)  "
            f"{found.peak_bytes / 1e6:6.0f} MB peak  {found.processor_seconds:6.2f} s  "
            f"{found.processor_seconds / size * 1e9:6.1f} ns/byte  {found.problem or ''}\n"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
