"""Twins among many connections: what is kept of those that have none, and the bound on those that may."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.duplicates.duplicate_connections import COLUMNS, Twin, find_twins

SECOND = 1_000_000
SCHEMA = pa.schema([arrow_schema(TABLES["connections"]).field(name) for name in COLUMNS])
PLAIN: dict[str, Any] = {
    "capture": "a.pcap", "client_address": "10.0.0.1", "client_port": 50_000, "broker_address": "10.0.0.2",
    "broker_port": 9092, "first_time": 5 * SECOND, "last_time": 9 * SECOND, "client_isn": None,
    "broker_isn": None, "messages_hash": None, "ending": "open", "client_bytes": 1, "client_missing_bytes": 0,
    "broker_bytes": 1, "broker_missing_bytes": 0, "syn_retries": 0, "handshake": True,
    "calls": 4, "proxied_address": None, "proxied_port": None, "client_retransmitted_bytes": 0,
    "broker_retransmitted_bytes": 0, "client_lost_before_bytes": 0, "broker_lost_before_bytes": 0,
}  # fmt: skip


class Connections:
    """Batches of rows, made anew whenever they are asked for; counts the columns that were asked for."""

    def __init__(self, *batches: Sequence[dict[str, Any]]) -> None:
        self.batches = batches
        self.asked: list[int] = []

    def __call__(self, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        self.asked.append(len(columns))
        for rows in self.batches:
            table = pa.Table.from_pylist([PLAIN | row for row in rows], schema=SCHEMA).select(list(columns))
            yield from table.to_batches()


def pair(number: int, isn: int, **columns: Any) -> list[dict[str, Any]]:
    """Before and behind NAT."""
    numbers = {"client_isn": isn, "broker_isn": isn + 1}
    return [
        {"connection_id": number, **numbers, **columns},
        {"connection_id": number + 1, **numbers, "client_address": "192.0.2.1", **columns},
    ]


def test_rows_are_read_only_where_keys_come_again() -> None:
    alone = Connections([{"connection_id": n, "client_isn": n, "broker_isn": 7} for n in range(50)])
    assert not find_twins(alone, 10)
    assert alone.asked == [3]


def test_twins_of_different_batches_in_any_order() -> None:
    one, other = pair(3, 77)
    twins = find_twins(Connections([other], [{"connection_id": 9}], [one]), 10)
    assert twins.found == {4: Twin(3, 0)}
    assert twins.left_out == 0


@pytest.mark.parametrize(
    ("columns", "delay"),
    [({}, 250), ({"capture": "b.pcap"}, None), ({"syn_retries": 1}, None), ({"handshake": False}, None)],
)
def test_the_time_between_is_that_of_one_syn_by_one_clock(columns: dict[str, Any], delay: int | None) -> None:
    one, other = pair(3, 77)
    twins = find_twins(Connections([one, other | {"first_time": 5 * SECOND + 250} | columns]), 10)
    assert twins.found == {4: Twin(3, delay)}


@pytest.mark.parametrize("backwards", [False, True])
def test_those_seen_first_are_compared(backwards: bool) -> None:
    """20 pairs, of which 12 rows may be compared: six pairs."""
    pairs = [pair(10 * number, 1_000 + number) for number in range(20)]
    twins = find_twins(Connections(*(reversed(pairs) if backwards else pairs)), 12)
    assert sorted(twins.found) == [10 * number + 1 for number in range(6)]
    assert twins.left_out == 28


@pytest.mark.parametrize("number", [64, 65])
def test_many_that_are_alike_prove_nothing(number: int) -> None:
    """A flood of SYNs with one number."""
    rows = [
        {"connection_id": at, "client_isn": 1, "broker_isn": 2, "client_address": f"10.0.0.{at}"}
        for at in range(number)
    ]
    assert len(find_twins(Connections(rows), 1_000).found) == (63 if number == 64 else 0)


def test_memory_does_not_grow_with_connections() -> None:
    """A million connections, half of which say the same as another: no more is kept than the limit allows."""
    ids = np.arange(1 << 16)

    def source(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        for part in range(16):
            numbers = {"connection_id": ids + (part << 16), "client_isn": ids, "broker_isn": ids + part // 2}
            arrays = [
                pa.array(numbers[name], SCHEMA.field(name).type)
                if name in numbers
                else pa.array([PLAIN[name]], SCHEMA.field(name).type).take(
                    pa.array(np.zeros(1 << 16, np.int64))
                )
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    tracemalloc.start()
    before = pa.total_allocated_bytes()
    twins = find_twins(source, 1_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert twins.left_out == (1 << 20) - 1_000
    assert most < 80 << 20
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize(
    ("columns", "twin"),
    [
        ({}, True),
        ({"capture": "b.pcap"}, False),  # of two clocks nobody knows what came first
        ({"handshake": False}, False),  # it may have said more
        ({"last_time": 11 * SECOND}, False),  # it outlived the other
        ({"broker_bytes": 2}, False),
        ({"client_bytes": 2}, False),
        ({"client_bytes": 2, "proxied_address": "10.0.0.1", "proxied_port": 50_000}, True),
        ({"client_bytes": 2, "proxied_address": "10.0.0.1", "proxied_port": 50_001}, False),
        ({"calls": 9, "broker_bytes": 2}, False),
    ],
)
def test_short_conversations_are_twins_only_as_a_whole(columns: dict[str, Any], twin: bool) -> None:
    before = {"connection_id": 3, "messages_hash": 5, "calls": 3, "ending": "fin"}
    behind = before | {"connection_id": 4, "client_address": "10.0.0.2", "broker_address": "10.0.0.3"}
    found = find_twins(Connections([before, behind | columns]), 10).found
    assert found == ({4: Twin(3, None)} if twin else {})
