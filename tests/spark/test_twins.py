"""Twins fall into different buckets; the pipeline finds them all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.hand import CLIENT, Talk, ask
from tests.spark.compare import analyzed, written
from tests.traffic import files
from tests.traffic.nat import with_nat_twin, without_twin
from tests.traffic.places import interleaved, renamed

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.spark.aggregates import aggregate
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES

NO_SPARK: Any = object()


@pytest.mark.sample(1)
@pytest.mark.parametrize("num_buckets", [1, 7])
def test_twins_are_found_across_buckets(in_process: None, tmp_path: Path, num_buckets: int) -> None:
    """Before and behind NAT, eight times."""
    path = tmp_path / "places.pcap"
    said, places = Talk().open(), []
    for number in range(1, 7):
        ask(said, number)
    for port in range(8):
        inside = [renamed(packet, {CLIENT: ("10.0.0.1", 50_000 + port)}) for packet in said.packets]
        outside = [renamed(packet, {CLIENT: ("192.0.2.1", 60_000 + port)}) for packet in said.packets]
        shifted = [
            packet[:24] + bytes([port]) + packet[25:28] + bytes([port]) + packet[29:]
            for packet in (*inside, *outside)
        ]
        places += [shifted[: len(inside)], shifted[len(inside) :]]
    rows = interleaved(places, start_ns=10**18, step_ns=10**6, behind_ns=10**4)
    path.write_bytes(files.pcap(rows, 101, nanoseconds=True))
    run_pipeline(path, tmp_path / "out", spark=NO_SPARK, tables=tuple(TABLES), num_buckets=num_buckets)
    assert written(tmp_path / "out") == (expected := analyzed(path))
    assert sum(row["twin_of"] is not None for row in expected["connections"]) == 8


@pytest.mark.sample(1)
@pytest.mark.parametrize("num_buckets", [1, 5])
def test_captures_of_two_places_count_once(in_process: None, tmp_path: Path, num_buckets: int) -> None:
    """A client's recording and its broker's; in splits, which keep samples of their own."""
    recorded = Path(__file__).parents[2] / "captures" / "clocks" / "far_40"
    pair = [tmp_path / f"{side}.pcap" for side in ("client", "broker")]
    for path in pair:
        path.write_bytes((recorded / path.name).read_bytes())
    expected = analyzed(*pair)
    run_pipeline(
        [str(path) for path in pair],
        tmp_path / "out",
        spark=NO_SPARK,
        tables=tuple(TABLES),
        num_buckets=num_buckets,
        split_bytes=1 << 16,
    )
    assert written(tmp_path / "out") == expected
    assert sum(row["twin_of"] is not None for row in expected["connections"]) == 5
    assert sum("seen at another place" in note for row in expected["captures"] for note in row["notes"]) == 1
    assert len(expected["hops"]) == 41


@pytest.mark.slow
@pytest.mark.parametrize("name", ["error_rates", "talkers", "client_versions", "error_counts", "rebalances"])
def test_aggregates_count_once(spark: Any, folders: tuple[Path, Path], name: str) -> None:
    rows = []
    for folder in folders:
        aggregate_rows = aggregate(spark, name, Place(str(folder)), (), run_id="run").collect()
        rows.append(sorted(str(row.asDict()) for row in aggregate_rows))
    assert rows[0]
    assert rows[0] == rows[1]


@pytest.fixture(scope="module")
def folders(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Tables of a capture without and with a twin of every connection."""
    made = tmp_path_factory.mktemp("twins")
    recorded = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
    for name, make in (("once", without_twin), ("twice", with_nat_twin)):
        (made / f"{name}.pcap").write_bytes(make(recorded))
        run_pipeline(made / f"{name}.pcap", made / name, spark=spark, num_buckets=1)
    return made / "once", made / "twice"
