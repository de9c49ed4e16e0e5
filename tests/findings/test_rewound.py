"""Produce responses whose offsets go back: any two that overlap are noticed, whichever comes first."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.conftest import TablesOf
from tests.findings.scripted import table_of
from tests.house.tree import ROOT

Row = Mapping[str, Any]


def produce(base: int | None, records: int = 1, **other: Any) -> Row:
    row = {
        "run_id": "run", "call_id": 1, "time": 0, "connection_id": 4, "api_name": "Produce",
        "client_id": "shop", "topic": "orders", "partition": 0, "record_bytes": 100, "record_count": records,
        "base_offset": base,
    }  # fmt: skip
    return row | other


def count(rows: Iterable[Row]) -> Figures:
    found = Figures()
    for batch in table_of("partitions", [*rows]).to_batches():
        found.add("partitions", batch)
    return found


def rewound(*rows: Row) -> float:
    return count(rows).as_dict()["rewound"]


def test_offsets_that_grow_do_not_go_back() -> None:
    assert rewound(produce(19, 6), produce(25), produce(26, 3), produce(40)) == 0


def test_a_batch_inside_an_earlier_one_goes_back_in_either_order() -> None:
    assert rewound(produce(19, 6), produce(22)) == 1
    assert rewound(produce(22), produce(19, 6)) == 1
    assert rewound(produce(19), produce(19)) == 1
    assert rewound(produce(19, record_count=None), produce(19)) == 1


def test_numbers_that_no_log_reaches_do_not_overflow() -> None:
    most = (1 << 63) - 1
    assert rewound(produce(most - 3, 2**31 - 1), produce(most)) == 1
    assert rewound(produce(most, -5), produce(0)) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "goes_back"),
    [
        ("lost_records", True),
        ("lost_unclean", True),
        ("healthy_leader_moves", False),
        ("healthy_rolling", False),
    ],
)
def test_offsets_go_back_where_a_log_was_truncated(name: str, goes_back: bool, tables_of: TablesOf) -> None:
    """The brokers' logs of these recordings say which of them truncated; leaders move in all of them."""
    capture = ROOT / "captures" / "incidents" / name / "broker.pcap"
    figures = figures_of(files_of_tables(tables_of(capture)))
    assert (figures.as_dict()["rewound"] > 0) is goes_back


def test_partitions_and_topics_are_apart_and_reads_do_not_count() -> None:
    others: Sequence[Row] = ({}, {"partition": 1}, {"topic": "audit"})
    assert rewound(*(produce(19, **other) for other in others)) == 0
    assert rewound(produce(19, 6), produce(20, api_name="Fetch"), produce(None), produce(25)) == 0


def test_a_topic_without_a_name_may_have_gone_back() -> None:
    assert rewound(produce(19, topic=None)) >= 1


@pytest.mark.parametrize("seed", range(3))
def test_an_overlap_is_noticed_in_any_order_and_in_parts(seed: int) -> None:
    dice = random.Random(seed)
    rows = [produce(10 * at, 10, partition=at % 3) for at in range(60)]
    assert rewound(*rows) == 0
    rows.append(produce(305, 1, partition=30 % 3))
    for _ in range(5):
        dice.shuffle(rows)
        assert rewound(*rows) >= 1
        whole = Figures()
        for part in (rows[::2], rows[1::2]):
            whole.merge(count(part).state())
        assert whole.as_dict()["rewound"] >= 1
