"""Looks for captures that take the most memory, or the most work, for their size.

    python -m tests.hostile.search [--minutes N] [--seed N] [--bytes N]

What is sent is a mixture of talks over many connections; how much of each, how long, how many and how often
are its genes. Each candidate is analyzed in a process of its own; the best of both aims breed. What is worse
than all before is printed; test_search.py keeps the worst that were found.
"""

import argparse
import os
import random
import resource
import struct
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

from tests.hostile.flood import HEADER, packet
from tests.hostile.greed import Line, beat, name
from tests.traffic import messages
from tests.traffic.files import block
from tests.traffic.messages import Exchange
from tests.traffic.records import batch
from tests.traffic.wire import request_bytes, sized

Genes = Mapping[str, int]

TALKS: Final = (
    "beats",
    "metadata",
    "fetches",
    "produces",
    "versions",
    "strays",
    "begun",
    "holes",
    "syns",
    "noise",
)
"""What may be said, each with a weight."""
RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(TALKS, (0, 8)),
    "name": (1, 32_000),  # bytes of a name
    "names": (1, 100_000),  # of them, before they come again
    "topics": (1, 400),  # of a call
    "partitions": (1, 3_000),  # of a topic
    "epochs": (0, 200),  # of a fetch session; 0: none is opened
    "calls": (1, 3_000),  # of a connection
    "late": (0, 300),  # calls by which an answer is late
    "unanswered": (0, 100),  # calls of a hundred
    "piece": (20, 60_000),  # bytes of a segment
    "turned": (0, 50),  # packets of a hundred that change places with the next one
    "values": (1, 300),  # records of a batch
    "value": (1, 20_000),  # bytes of a record
    "codec": (0, 2),  # none, gzip, zstd
    "failing": (0, 1),  # every partition has an error
    "moving": (0, 1),  # every partition has another leader each time
    "interfaces": (0, 70_000),  # of a pcapng; 0: a pcap
}


class Talk:
    """The packets of a mixture, without end."""

    def __init__(self, genes: Genes, seed: int = 1) -> None:
        self.genes = genes
        self.dice = random.Random(seed)
        self.number = 0
        self.lines = 0
        self.owed: deque[Exchange] = deque()
        weights = [genes[each] for each in TALKS]
        self.weights = weights if any(weights) else [1] * len(TALKS)

    def packets(self) -> Iterator[bytes]:
        """One connection after the other; none of them is closed."""
        while True:
            line = Line(self.lines, self.genes["piece"])
            self.lines += 1
            self.owed.clear()
            yield line.open()
            for _ in range(self.genes["calls"]):
                (kind,) = self.dice.choices(TALKS, self.weights)
                self.number += 1
                waiting: list[bytes] = []
                for data, back in self._said(kind, line):
                    waiting.append(line.say(data, back=back))
                    if len(waiting) > 1:
                        yield self._turned(waiting)
                        waiting = []
                yield b"".join(waiting)

    def _turned(self, said: list[bytes]) -> bytes:
        if len(said) > 1 and self.dice.randrange(100) < self.genes["turned"]:
            said.reverse()
        return b"".join(said)

    def _said(self, kind: str, line: Line) -> Iterator[tuple[bytes, bool]]:
        if kind in _CALLS:
            for call in _CALLS[kind](self):
                yield call.request, False
                self.owed.append(call)
            while len(self.owed) > self.genes["late"]:
                call = self.owed.popleft()
                if self.dice.randrange(100) >= self.genes["unanswered"]:
                    yield call.response or b"", True
        elif kind == "strays":
            yield sized(struct.pack(">i", -self.number) + bytes(self.genes["value"])), True
        elif kind == "begun":
            yield struct.pack(">i", 100 << 20) + request_bytes(0, 9, self.number, self.name(0), b""), False
        elif kind == "holes":
            line.sent[self.number & 1] += 1 + self.genes["value"]
            yield bytes(self.genes["value"]), bool(self.number & 1)
        elif kind == "syns":
            self.lines += 1
        else:
            yield self.dice.randbytes(self.genes["value"]), bool(self.number & 1)

    def name(self, each: int) -> str:
        """The name of a call's topic, group, member or client."""
        return name((self.number * self.topics + each) % self.genes["names"], self.genes["name"])[
            : self.genes["name"]
        ]

    @property
    def topics(self) -> int:
        """Of a call: no call says more than 2 MB of names."""
        return max(min(self.genes["topics"], 2_000_000 // self.genes["name"]), 1)

    @property
    def partitions(self) -> int:
        """Of a topic: no call says more than 3,000."""
        return max(min(self.genes["partitions"], 3_000 // self.topics), 1)

    def sets(self, data: bytes | None) -> dict[str, dict[int, bytes | None]]:
        """Topics and partitions with the same records each."""
        return {self.name(each): dict.fromkeys(range(self.partitions), data) for each in range(self.topics)}

    def errors(self, sets: Mapping[str, Mapping[int, bytes | None]]) -> dict[tuple[str, int], int]:
        """An error of each partition, or none."""
        if not self.genes["failing"]:
            return {}
        return {(topic, part): 3 + self.number % 60 for topic, parts in sets.items() for part in parts}


def _beats(talk: Talk) -> Iterator[Exchange]:
    yield beat(talk.number, talk.name(0), talk.name(1), talk.name(2))


def _metadata(talk: Talk) -> Iterator[Exchange]:
    asked = list(dict.fromkeys(talk.name(each) for each in range(talk.topics)))
    moved = talk.number if talk.genes["moving"] else 1
    yield messages.metadata(
        12, talk.number, asked, client_id=talk.name(0), partitions=min(talk.partitions, 100), leader=moved,
        epoch=moved, errors=dict.fromkeys(asked, 5) if talk.genes["failing"] else {},
    )  # fmt: skip


def _fetches(talk: Talk) -> Iterator[Exchange]:
    sets, epochs = talk.sets(b""), talk.genes["epochs"]
    first = (0, 0) if epochs else (0, -1)
    yield messages.fetch(
        12, talk.number, sets, client_id=talk.name(0), session=first, opened=talk.number if epochs else 0,
        errors=talk.errors(sets), news={} if epochs else None,
    )  # fmt: skip
    for epoch in range(1, epochs):
        session = (talk.number, epoch)
        yield messages.fetch(
            12, talk.number + epoch, {}, client_id=talk.name(0), session=session, opened=talk.number, news={}
        )


def _produces(talk: Talk) -> Iterator[Exchange]:
    value, codec = b"v" * talk.genes["value"], talk.genes["codec"]
    values = [value] * max(min(talk.genes["values"], 2_000_000 // talk.genes["value"]), 1)
    packed = (4, zstandard.ZstdCompressor().compress) if codec == 2 else None
    parts = {talk.name(0): {0: batch(values[:20], gzipped=codec == 1, compress=packed)}}
    yield messages.produce(9, talk.number, parts, client_id=talk.name(1), errors=talk.errors(parts))


def _versions(talk: Talk) -> Iterator[Exchange]:
    offered = [(key, talk.number % 100, 100 + talk.number % 7000) for key in range(talk.partitions)]
    software = (talk.name(0), talk.name(1))
    yield messages.api_versions(3, talk.number, client_id=talk.name(2), software=software, supported=offered)


_CALLS: Final[Mapping[str, Callable[[Talk], Iterator[Exchange]]]] = {
    "beats": _beats, "metadata": _metadata, "fetches": _fetches, "produces": _produces, "versions": _versions,
}  # fmt: skip


def write(path: Path, genes: Genes, size: int) -> int:
    """A capture of about so many bytes; gives how many."""
    interfaces = genes["interfaces"]
    with path.open("wb") as file:
        file.write(_sections(interfaces) if interfaces else HEADER)
        for data in Talk(genes).packets():
            file.write(_in_blocks(data, interfaces) if interfaces else data)
            if file.tell() >= size:
                return file.tell()
    raise AssertionError("a talk has no end")


def _sections(interfaces: int) -> bytes:
    begin = block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    return begin + block("<", 1, struct.pack("<HHI", 101, 0, 0)) * interfaces


def _in_blocks(records: bytes, interfaces: int) -> bytes:
    """Records of a pcap as blocks of interface after interface."""
    blocks, at = [], 0
    while at < len(records):
        captured, length = struct.unpack_from("<II", records, at + 8)
        data = records[at + 16 : at + 16 + captured]
        head = struct.pack("<IIIII", at % interfaces, 0, 1_000_000, captured, length)
        blocks.append(block("<", 6, head + data + bytes(-captured % 4)))
        at += 16 + captured
    return b"".join(blocks)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a capture takes beyond an empty one, for each of its bytes."""

    memory: float
    nanoseconds: float
    size: int


def measure(capture: Path, folder: Path) -> tuple[int, float]:
    """Peak resident bytes and processor seconds of `kwsniff.analyze` in a process that is loaded already.

    Raises AssertionError where it does not end well.
    """
    import kwsniff

    read, told = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(read)
            begun = time.process_time()
            kwsniff.analyze(capture, output=folder / "tables")
            spent = time.process_time() - begun
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(told, struct.pack("<qd", peak, spent))
            status = 0
        finally:
            os._exit(status)
    os.close(told)
    with os.fdopen(read, "rb") as answer:
        data = answer.read()
    _, ended = os.waitpid(child, 0)
    if ended:
        raise AssertionError(f"analyze ended with {ended}")
    peak, spent = struct.unpack("<qd", data)
    return peak, spent


class Search:
    """Candidates, and the best of each aim so far."""

    def __init__(self, seed: int, size: int) -> None:
        self.dice = random.Random(seed)
        self.size = size
        self.tried = 0
        self.best: dict[str, list[tuple[float, Genes]]] = {"memory": [], "nanoseconds": []}
        with tempfile.TemporaryDirectory(prefix="kwsniff-search-") as made:
            path = Path(made, "empty.pcap")
            path.write_bytes(HEADER + packet(1, 1024, flags=2))
            self.empty = measure(path, Path(made))

    def cost(self, genes: Genes) -> Cost:
        """Of a capture with these genes."""
        with tempfile.TemporaryDirectory(prefix="kwsniff-search-") as made:
            path = Path(made, "capture")
            size = write(path, genes, self.size)
            peak, spent = measure(path, Path(made))
        self.tried += 1
        return Cost((peak - self.empty[0]) / size, (spent - self.empty[1]) / size * 1e9, size)

    def next(self) -> Genes:
        """A child of one or two of the best, or a stranger."""
        parents = [genes for kept in self.best.values() for _, genes in kept]
        if len(parents) < 4 or self.dice.random() < 0.2:
            few = self.dice.sample(TALKS, 3)
            return {each: 0 if each in TALKS and each not in few else self._drawn(each) for each in RANGES}
        one, other = self.dice.choice(parents), self.dice.choice(parents)
        child = {each: (one if self.dice.random() < 0.7 else other)[each] for each in RANGES}
        for each in self.dice.sample(sorted(RANGES), self.dice.choice((1, 1, 2, 3))):
            child[each] = self._drawn(each)
        return child

    def _drawn(self, gene: str) -> int:
        """As often small as large, for what has a wide range."""
        least, most = RANGES[gene]
        if most < 100 or self.dice.random() < 0.1:
            return self.dice.choice((least, most, self.dice.randint(least, most)))
        return min(most, max(least, int((most + 1) ** self.dice.random())))

    def keep(self, aim: str, value: float, genes: Genes, most: int = 6) -> bool:
        """Whether it is the worst so far."""
        kept = self.best[aim]
        kept.append((value, genes))
        kept.sort(key=lambda each: -each[0])
        del kept[most:]
        return kept[0][1] is genes


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what is worse than all before, then the worst."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.search", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=3_000_000, help="of each capture")
    options = parser.parse_args(arguments)
    search = Search(options.seed, options.bytes)
    end = time.monotonic() + 60 * options.minutes
    while not search.tried or time.monotonic() < end:
        genes = search.next()
        cost = search.cost(genes)
        for aim in search.best:
            value = getattr(cost, aim)
            if search.keep(aim, value, genes):
                sys.stdout.write(f"{search.tried:6} {aim} {value:.1f} per byte  {_written(genes)}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{search.tried} captures tried\n")
    for aim, kept in search.best.items():
        sys.stdout.writelines(f"{aim} {value:.1f} per byte  {_written(genes)}\n" for value, genes in kept)
    return 0


def _written(genes: Genes) -> str:
    """Genes as a call of `made`."""
    said = [f"{each}={genes[each]}" for each in RANGES if genes[each] or each not in TALKS]
    return f"made({', '.join(said)})"


def made(**given: int) -> Genes:
    """Genes, the least of each unless given."""
    return {**{each: least for each, (least, _) in RANGES.items()}, **given}


if __name__ == "__main__":
    sys.exit(main())
