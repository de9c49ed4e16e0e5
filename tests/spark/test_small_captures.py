"""Captures with little in them, or nothing, and very many of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from tests.spark.compare import analyzed, rotated, written
from tests.traffic import files

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.spark.events import Notes
from kwsniff.timelines.timelines import Noted
from tests.spark.test_pipeline import recorded, run

EMPTY = {
    "b.pcap": files.pcap([]),
    "b.pcap.gz": gzip.compress(files.pcap([])),
    "b.pcapng": files.pcapng([]),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("others", [("a", "c"), ("a",), ("c",), ()])
def test_a_capture_that_has_no_packets_yet_is_one(
    in_process: None, tmp_path: Path, empty: str, others: tuple[str, ...]
) -> None:
    """As tcpdump leaves it until the first packet, or where nothing was said before it rotated."""
    paths = [tmp_path / f"{each}.pcap" for each in others]
    for path, data in zip(paths, (recorded("transactions"), recorded("rebalance")), strict=False):
        path.write_bytes(data.read_bytes())
    (tmp_path / empty).write_bytes(EMPTY[empty])
    run([tmp_path / empty, *paths], tmp_path / "out")
    assert written(tmp_path / "out") == analyzed(tmp_path / empty, *paths)


def test_small_files_share_their_batches_of_rows(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each file took a gigabyte for a hundred thousand of them."""
    batches: list[int] = []
    add = Notes.add

    def counted(notes: Notes, batch: pa.RecordBatch, noted: Noted) -> None:
        batches.append(batch.num_rows)
        add(notes, batch, noted)

    monkeypatch.setattr(Notes, "add", counted)
    paths = rotated(recorded("transactions").read_bytes(), 60, tmp_path)
    made = run(paths, tmp_path / "out", num_buckets=1)
    assert sum(batches) == made.rows["api_calls"]
    assert len(batches) <= 2  # at the end, and what the end ends


@pytest.mark.slow
def test_a_capture_that_is_given_twice_is_told_to_be(in_process: None, tmp_path: Path) -> None:
    data = recorded("transactions").read_bytes()
    paths = [tmp_path / name for name in ("a.pcap", "b.pcap", "c.pcap.gz")]
    for path in paths:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    run(paths, tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(*paths)
    assert ["a copy of" in str(row["notes"]) for row in found["captures"]] == [False, True, True]
