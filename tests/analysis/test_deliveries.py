"""How long records take to their readers, in the summary: as the rows of the table say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.analysis.rollups import delivery_times as rollup
from kwsniff.analysis.rollups.delivery_times import MOST_READERS, OTHERS, PARTS, Ways
from kwsniff.cli.main import run
from kwsniff.tables.schema import TABLES, coded_schema
from tests.house.tree import ROOT

CAPTURE = ROOT / "captures" / "deliveries" / "capture.pcap.gz"
BATCHES = 150


@pytest.fixture(scope="module")
def told() -> Any:
    analysis = kwsniff.analyze(CAPTURE)
    return analysis.summary["deliveries"], analysis.deliveries.to_pylist()


def _rank(values: list[float], percent: int) -> float:
    """Nearest rank."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def test_each_group_has_its_percentiles_and_parts(told: Any) -> None:
    ways, rows = told
    assert [(way["topic"], way["group_id"], way["batches"]) for way in ways] == [
        ("orders", "audit", BATCHES),
        ("orders", "billing", BATCHES),
    ]
    for way in ways:
        own = [row for row in rows if row["group_id"] == way["group_id"] and row["produced_time"]]
        for name, end in (("fetch", "fetched_time"), ("commit", "committed_time")):
            took = [(row[end] - row["produced_time"]).total_seconds() for row in own if row[end]]
            for percent in (50, 99):
                assert way[f"{name}_p{percent}_ns"] == pytest.approx(_rank(took, percent) * 1e9)
        sums = {part: sum(row[part] or 0 for row in own) for part in PARTS}
        assert {part: way[part] for part in PARTS} == sums
        assert sums[way["mostly"]["part"]] == max(sums.values())


def test_the_summary_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(CAPTURE)]) == 0
    shown = capsys.readouterr().out
    (line,) = (line for line in shown.splitlines() if line.split()[:3] == ["orders", "audit", str(BATCHES)])
    assert line.endswith("until the commit")
    assert run(["analyze", str(CAPTURE), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["deliveries"]) == 2


def _rows(readers: int) -> pa.RecordBatch:
    schema = coded_schema(TABLES["deliveries"])
    known: dict[str, list[Any]] = {
        "topic": ["orders"] * readers,
        "client_id": [f"reader {number}" for number in range(readers)],
        "produced_time": [1_000] * readers,
        "fetched_time": [3_000] * readers,
        "produce_ns": [500_000] * readers,
    }
    columns = [
        pa.array(known.get(field.name, [None] * readers)).cast(
            field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        )
        for field in schema
    ]
    coded = [
        column.dictionary_encode().cast(field.type) if pa.types.is_dictionary(field.type) else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(coded, names=schema.names)


def test_readers_beyond_the_most_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "MOST_READERS", 3)
    ways = Ways()
    ways.add(_rows(5))
    found = {(each["topic"], each["client_id"]): each for each in ways.as_dicts({})}
    assert found[OTHERS, None]["batches"] == 2
    assert len(found) == 4
    assert {each["fetch_p99_ns"] for each in found.values()} == {2_000_000}
    assert MOST_READERS >= 100


def test_a_capture_without_readers_shows_no_list(tmp_path: Path) -> None:
    ways = Ways()
    ways.add(_rows(0))
    assert ways.as_dicts({}) == []
