"""The loads of the benchmark, as scenes for `tests.perf.repeat`."""

from __future__ import annotations

import itertools
import random
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch, count_records
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Endpoint, Scene

OFFLOADED = 45 * 1448  # what a network card is handed at once
ON_THE_WIRE = 1448
LARGE_PERIOD = 40 * MILLISECOND
SMALL_PERIOD = 20 * MILLISECOND
SMALL_CONNECTIONS = 36


class Offsets:
    """Where partitions end and how far each consumer has read: from 100 on, and never behind the broker."""

    def __init__(self) -> None:
        self._end: defaultdict[tuple[str, int], int] = defaultdict(lambda: 100)
        self._next: defaultdict[tuple[int, str], int] = defaultdict(lambda: 100)

    def of(self, client: int, topic: str) -> int:
        """The offset of the next record, which a commit names."""
        return self._next[client, topic]

    def end(self, client: int, topic: str) -> int:
        """The high watermark."""
        return self._next[client, topic]

    def produce(
        self,
        version: int,
        correlation_id: int,
        batches: bytes,
        *,
        topic: str,
        partition: int = 0,
        client_id: str,
        error: int = 0,
    ) -> Exchange:
        """A Produce that appends to a partition, or fails."""
        offset = self._end[topic, partition]
        if not error:
            self._end[topic, partition] += count_records(batches)
        return messages.produce(
            version,
            correlation_id,
            {topic: {partition: batches}},
            client_id=client_id,
            errors={(topic, partition): error} if error else None,
            offset=offset,
        )

    def fetch(
        self,
        version: int,
        correlation_id: int,
        client: int,
        batches: Mapping[int, bytes],
        *,
        topic: str,
        client_id: str,
        error: int = 0,
    ) -> Exchange:
        """A fetch that gets all there is of partition 0, or fails."""
        offset = self._next[client, topic]
        if not error:
            self._next[client, topic] += count_records(batches[0])
        return messages.fetch(
            version,
            correlation_id,
            {topic: {0: _placed(batches[0], offset), **{p: data for p, data in batches.items() if p}}},
            client_id=client_id,
            errors={(topic, 0): error} if error else None,
            offset=offset,
            high_watermark=self.end(client, topic),
        )


def _placed(batches: bytes, offset: int) -> bytes:
    """These batches from an offset on; their checksums do not cover it."""
    placed, at = bytearray(batches), 0
    while at < len(placed):
        struct.pack_into(">q", placed, at, offset)
        size, last = struct.unpack_from(">i", placed, at + 8)[0], struct.unpack_from(">i", placed, at + 23)[0]
        offset += last + 1
        at += 12 + size
    return bytes(placed)


def rounds(make: Callable[[Offsets], Scene]) -> tuple[Scene, Scene]:
    """The first round and the one behind it, in which offsets have grown."""
    offsets = Offsets()
    return make(offsets), make(offsets)


def record_set(size: int, record_size: int = 10_000) -> bytes:
    """Batches of about 100 kB of incompressible records."""
    dice = random.Random(size)
    out = b""
    while len(out) < size:
        count = max(min(size - len(out), 100_000) // record_size, 1)
        out += batch([dice.randbytes(record_size) for _ in range(count)])
    return out


def large(offsets: Offsets, sizes: Sequence[int] = (100_000, 300_000, 1_000_000)) -> Scene:
    """Six connections: fetches and produces of 100 kB to 1 MB, half as seen beside an offloading card."""
    scene = Scene()
    for number, size in enumerate(sizes):
        records = record_set(size)
        for writes, mss in enumerate((OFFLOADED, ON_THE_WIRE)):
            script = scene.connection(
                Endpoint(f"10.2.0.{number * 2 + writes + 1}", 40_000 + number),
                Endpoint("10.2.1.1", 9092),
                mss=mss,
            )
            script.gap_ns = 200
            script.open()
            at = MILLISECOND * (2 + number * 4 + writes * 2)
            if writes:
                exchange = offsets.produce(
                    7, 1, records, topic="bulk", partition=number, client_id=f"bulk-{number}"
                )
            else:
                exchange = offsets.fetch(
                    11, 1, number, {0: records}, topic="bulk", client_id=f"reader-{number}"
                )
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


def small(offsets: Offsets, connections: int = SMALL_CONNECTIONS) -> Scene:
    """Dozens of connections with small calls: half of them produce, the others fetch, beat and ask."""
    scene = Scene()
    record = batch([b"v" * 120])
    for number in range(connections):
        script = scene.connection(
            Endpoint(f"10.3.0.{number + 1}", 42_000 + number), Endpoint(f"10.3.1.{number % 3 + 1}", 9092)
        )
        script.open()
        client_id = f"client-{number}"
        topic = f"topic-{number % 7}"
        calls: list[Exchange]
        if number % 2:
            calls = [
                offsets.produce(7, index, record, topic=topic, partition=number % 12, client_id=client_id)
                for index in range(1, 9)
            ]
        else:
            error = 6 if number % 6 == 0 else 0
            group = f"group-{number % 5}"
            fetch = partial(offsets.fetch, 11, client=number, topic=topic, client_id=client_id)
            calls = [
                fetch(1, batches={0: record, 1: b""}),
                groups.heartbeat(3, 2, group, client_id=client_id),
                fetch(3, batches={0: b""}),
                fetch(4, batches={0: b"" if error else record}, error=error),
                messages.metadata(9, 5, [topic], client_id=client_id),
                fetch(6, batches={0: batch([b"v" * 120] * 2) if error else record}),
                groups.offset_commit(
                    7, 7, group, {topic: {0: offsets.of(number, topic)}}, client_id=client_id
                ),
                fetch(8, batches={0: record}),
            ]
        for index, exchange in enumerate(calls):
            at = MILLISECOND * (2 + 2 * index) + number * 20 * MICROSECOND
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


def mixed(offsets: Offsets, connections: int = 200, topics: int = 50, errors: float = 0.01) -> Scene:
    """Calls of 100 bytes or so, up to five under way at a time.

    Of 20 calls 8 are Produce, 8 Fetch, 2 Heartbeat, one Metadata and one OffsetCommit. Four clients are a
    group, and a commit is of the topic read last. `errors`: the share of produced, fetched and committed
    partitions, and of heartbeats, that fail.
    """
    scene = Scene()
    dice = random.Random(topics)
    scripts, kinds = [], []
    for number in range(connections):
        scripts.append(
            scene.connection(
                Endpoint(f"10.4.{number // 250}.{number % 250 + 1}", 30_000 + number),
                Endpoint(f"10.5.0.{number % 3 + 1}", 9092),
            )
        )
        scripts[number].open()
        kinds.append([*"PPPPPPPPFFFFFFFFHHMO"])
        dice.shuffle(kinds[number])
    read = [""] * connections
    # In the order of time: a broker gives offsets in it, too.
    for index, number in itertools.product(range(20), range(connections)):
        kind, topic = kinds[number][index], f"topic-{dice.randrange(topics)}"
        code = _ERRORS[kind] if dice.random() < errors else 0
        read[number] = topic if kind == "F" else read[number]
        named = read[number] or topic if kind == "O" else topic
        exchange = _of_kind(offsets, kind, index + 1, topic=named, client=number, error=code)
        at = MILLISECOND + index * 200 * MICROSECOND + number * MICROSECOND
        scripts[number].call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


_ERRORS = {"P": 6, "F": 6, "H": 27, "M": 0, "O": 22}
"""NOT_LEADER_OR_FOLLOWER; REBALANCE_IN_PROGRESS and ILLEGAL_GENERATION while a group rebalances."""


def _of_kind(
    offsets: Offsets, kind: str, correlation_id: int, *, topic: str, client: int, error: int
) -> Exchange:
    client_id, group = f"client-{client}", f"group-{client // 4}"
    errors = {(topic, 0): error} if error else {}
    record = batch([b"v" * 40])
    match kind:
        case "P":
            # Not where the others read: they would fall behind.
            return offsets.produce(
                9, correlation_id, record, topic=topic, partition=1, client_id=client_id, error=error
            )
        case "F":
            found = {0: b"" if error else record}
            return offsets.fetch(
                12, correlation_id, client, found, topic=topic, client_id=client_id, error=error
            )
        case "H":
            return groups.heartbeat(4, correlation_id, group, error=error, client_id=client_id)
        case "M":
            return messages.metadata(9, correlation_id, [topic], client_id=client_id)
        case _:
            return groups.offset_commit(
                8,
                correlation_id,
                group,
                {topic: {0: offsets.of(client, topic)}},
                client_id=client_id,
                errors=errors,
            )
