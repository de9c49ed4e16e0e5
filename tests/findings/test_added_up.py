"""Figures of parts, added up, are those of all rows, whoever counted which of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.findings.prefilter import client_rates, lags, partition_volumes
from kwsniff.findings.prefilter.figures import COUNTED, Figures
from kwsniff.findings.prefilter.stuck_reads import StandingReads
from kwsniff.spark.serialization import dump, load
from kwsniff.tables.stored_files import files_of_tables
from tests.findings import scripted
from tests.findings.conftest import TablesOf
from tests.findings.scripted import table_of
from tests.findings.test_figures import RECORDINGS
from tests.house.tree import ROOT

Batches = Sequence[tuple[str, pa.RecordBatch]]

MORE = [ROOT / "captures" / name / "capture.pcap" for name in ("three_brokers", "first_steps")]


def told(figures: Figures) -> tuple[Any, ...]:
    """All that does not depend on the order of rows. Reads that do not advance, and offsets that go
    back, do: `test_stuck_reads`, `test_rewound`."""
    sums = {
        name: sorted(zip(*columns.values(), strict=True), key=repr)
        for name, columns in figures.sums().items()
    }
    counted = figures.as_dict()
    reads = {name: counted.pop(name) for name in (*StandingReads().figures(), "rewound")}
    asked = [rule for rule in figures.worth_asking() if not any(reads.keys() & gate for gate in rule.when)]
    return counted, sums, figures.total_ns(), figures.long_texts, asked


def _counted(batches: Batches, *, nameless: bool = False) -> Figures:
    figures = Figures(nameless=nameless)
    for table, batch in batches:
        figures.add(table, batch)
    return figures


def _added_up(batches: Batches, parts: int, dice: random.Random, *, nameless: bool = False) -> Figures:
    """As tasks send them; parts have their batches in any order."""
    dealt: list[list[tuple[str, pa.RecordBatch]]] = [[] for _ in range(parts)]
    for each in dice.sample([*batches], len(batches)):
        dice.choice(dealt).append(each)
    figures = Figures(nameless=nameless)
    for part in dealt:
        figures.merge(load(dump(_counted(part, nameless=nameless).state())))
    return figures


def _words_in(path: str) -> list[str]:
    return [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]


def _batches(folder: Path, rows: int = 50) -> Batches:
    return [
        (name, batch)
        for name, (path,) in files_of_tables(folder).items()
        if name in COUNTED
        for batch in pq.ParquetFile(path, read_dictionary=_words_in(path)).iter_batches(rows)
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "capture", [*RECORDINGS[::6], *MORE], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_figures_of_recordings_add_up(capture: Path, tables_of: TablesOf) -> None:
    batches, dice = _batches(tables_of(capture)), random.Random(capture.parent.name)
    expected = told(_counted(batches))
    for parts in (1, 3, 8):
        assert told(_added_up(batches, parts, dice)) == expected


def _random_rows(dice: random.Random, nobody: float = 0.0) -> dict[str, list[dict[str, Any]]]:
    """Calls, errors, partitions, batches of few clients and topics, with equal times and nulls; `nobody`: the
    share of what was written by clients without a name."""

    def maybe(value: Any) -> Any:
        return value if dice.random() < 0.8 else None

    calls, errors, partitions, records = [], [], [], []
    for call_id in range(600):
        client = {
            "client_id": None if dice.random() < nobody else f"client {dice.randrange(5)}",
            "client_address": f"10.0.0.{dice.randrange(3)}",
        }
        call = {
            "run_id": "run",
            "call_id": call_id,
            "api_name": dice.choice(("Produce", "Fetch", "Metadata")),
            **client,
        }
        time = dice.randrange(40) * 250_000
        calls.append(
            {
                **call,
                "caller": dice.choice(("client", "client", "client", "replica")),
                "status": dice.choice(("answered", "unanswered")),
                "request_time": maybe(time),
                "latency_ns": maybe(dice.randrange(10**9)),
                "record_count": maybe(dice.randrange(3)),
                "record_bytes": maybe(dice.randrange(10_000)),
                "max_wait_ms": maybe(dice.choice((0, 500))),
                "throttle_time_ms": maybe(dice.randrange(-1, 4)),
            }
        )
        errors.append({**call, "error_code": dice.choice((6, 6, 75, 3)), "response_time": maybe(time)})
        topic = dice.randrange(4)
        partitions.append(
            {
                **call,
                "client_id": None if dice.random() < nobody else f"client {dice.randrange(5)}",
                "time": time,
                "topic": maybe(f"topic {topic}"),
                "topic_id": maybe(f"{topic}" * 22),
                "partition": dice.randrange(6),
                "record_bytes": maybe(dice.choice((0, 100, 9_000))),
                "high_watermark": maybe(9),
                "last_stable_offset": maybe(dice.choice((8, 9))),
            }
        )
        records.append(
            {**call, "codec": dice.choice(("none", "zstd")), "bytes": maybe(dice.randrange(9_000))}
        )
    return {"api_calls": calls, "error_codes": errors, "partitions": partitions, "record_batches": records}


def _in_batches(rows: Mapping[str, Sequence[Mapping[str, Any]]], size: int = 37) -> Batches:
    return [(name, batch) for name, some in rows.items() for batch in table_of(name, some).to_batches(size)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("nobody", [0.0, 0.1])
def test_figures_of_any_rows_add_up(seed: int, nobody: float) -> None:
    dice = random.Random(seed)
    batches = _in_batches(_random_rows(dice, nobody))
    expected = told(_counted(batches))
    assert expected[1].keys() >= {"call_sum", "written"} if nobody == 0 else expected[1] == {}
    assert told(_added_up(batches, dice.randint(2, 9), dice)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_topics_that_are_named_late_count_by_their_names(seed: int) -> None:
    dice = random.Random(seed)
    rows = _random_rows(dice)
    names = {"0" * 22: "topic 0", "1" * 22: "topic 1", "2" * 22: "topic 0"}
    found = _added_up(_in_batches(rows), 4, dice, nameless=True)
    found.name_topics(names)
    for row in rows["partitions"]:
        row["topic"] = row["topic"] or names.get(row["topic_id"])
    assert told(found) == told(_counted(_in_batches(rows)))


def test_a_name_that_is_long_is_told_of() -> None:
    figures = Figures(nameless=True)
    figures.name_topics({"A" * 22: "x" * 250})
    assert not figures.long_texts
    figures.name_topics({"B" * 22: "x" * 2500})
    assert figures.long_texts


@pytest.mark.parametrize("groups", [5, 60])
def test_lags_add_up(groups: int) -> None:
    rows = scripted.lags(groups)
    batches = _in_batches({"commits": rows}, 11)
    expected = _counted(batches).as_dict()["lag_growth"]
    assert 0 < expected < max(row["lag"] or 0 for row in rows)
    assert _added_up(batches, 6, random.Random(groups)).as_dict()["lag_growth"] == expected


@pytest.mark.parametrize("both", [False, True])
def test_lags_of_topics_that_are_named_late_count_by_their_names(both: bool) -> None:
    """Where a topic is shown by name and by id, only the rule can tell."""
    rows = [{**row, "topic": None, "topic_id": "A" * 22} for row in scripted.lags(groups=5)]
    if both:
        rows[0] |= {"topic": "orders", "topic_id": None, "lag": 7}
    found = _added_up(_in_batches({"commits": rows}, 11), 3, random.Random(5), nameless=True)
    found.name_topics({"A" * 22: "orders"})
    named = [{**row, "topic": "orders"} for row in rows]
    expected = _counted(_in_batches({"commits": named})).as_dict()["lag_growth"]
    known = [row["lag"] for row in rows if row["lag"] is not None]
    assert (expected == max(known) - min(known)) == both
    assert found.as_dict()["lag_growth"] == expected


def _half(half: int) -> Batches:
    """Three clients in twenty ticks, three partitions, one place that commits."""
    told = [{"run_id": "run", "call_id": 2 * number + half} for number in range(30)]
    return _in_batches(
        {
            "api_calls": [
                {
                    **each,
                    "client_id": f"client {half} {number % 3}",
                    "caller": "client",
                    "api_name": "Fetch",
                    "request_time": number * 500_000,
                }
                for number, each in enumerate(told)
            ],
            "partitions": [
                {
                    **each,
                    "client_id": "ui",
                    "api_name": "Produce",
                    "topic": f"{half}",
                    "partition": number % 3,
                }
                | {"record_bytes": 9, "time": number}
                for number, each in enumerate(told)
            ],
            "commits": [
                {**each, "group_id": "billing", "topic": "orders", "partition": half}
                | {"time": number * 1_000_000, "lag": 10 + number + 1000 * half}
                for number, each in enumerate(told)
            ],
        }
    )


@pytest.mark.parametrize(
    ("module", "name", "most", "figure", "crowded"),
    [
        (client_rates, "MOST_CLIENTS", 4, "lone_record_rate", float("inf")),
        (client_rates, "_MOST_MARKS", 40, "pauses", float("inf")),
        (partition_volumes, "MOST_PARTITIONS", 4, "hot_times", float("inf")),
        (lags, "MOST_PLACES", 1, "lag_growth", 1029),
        (lags, "MOST_ROWS", 40, "lag_growth", 1029),
    ],
)
def test_parts_that_are_more_together_than_is_counted_are_asked_about(  # noqa: PLR0917
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, most: int, figure: str, crowded: float
) -> None:
    monkeypatch.setattr(module, name, most)
    figures = Figures()
    for half in (0, 1):
        part = _counted(_half(half))
        assert part.as_dict()[figure] < 30
        figures.merge(load(dump(part.state())))
    assert figures.as_dict()[figure] == crowded
    assert _counted([*_half(0), *_half(1)]).as_dict()[figure] == crowded
    figures.merge(load(dump(_counted(_half(1)).state())))
    assert figures.as_dict()[figure] == crowded
    again = Figures()
    again.merge(load(dump(figures.state())))
    assert again.as_dict()[figure] == crowded
