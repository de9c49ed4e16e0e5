"""Texts that somebody made long on purpose are cut before rows are compared; findings stay the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import kwsniff
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.prefilter.figures import figures_of
from kwsniff.findings.short_texts import copy_shortened
from kwsniff.tables.stored_files import files_of_tables
from tests.house.tree import ROOT

LONG = "ordres" + "x" * 32_000
MOST = 300  # characters that are kept of a text


def _lengthened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = column.cast(pa.string())
    return pc.if_else(pc.equal(texts, "ordres"), LONG, texts)


def test_a_topic_of_32_kb_has_the_finding_of_a_short_one(tmp_path: Path) -> None:
    kwsniff.analyze(ROOT / "captures" / "incidents" / "unknown_topic" / "broker.pcap", output=tmp_path)
    files = files_of_tables(tmp_path)
    (short,) = (each for each in find_in_files(files) if each.finding == "unknown_topic")
    assert not figures_of(files).long_texts
    for paths in files.values():
        for path in paths:
            rows = pq.ParquetFile(path).read()
            for at, field in enumerate(rows.schema):
                if field.name == "topic":
                    rows = rows.set_column(at, field.name, _lengthened(rows[field.name]))
            pq.write_table(rows, path)
    assert figures_of(files).long_texts
    (found,) = (each for each in find_in_files(files) if each.finding == "unknown_topic")
    assert found.subject.startswith("ordresxxx")
    assert len(found.subject) < MOST
    assert (found.value, found.calls, found.call_ids) == (short.value, short.calls, short.call_ids)


def test_texts_that_differ_at_their_ends_stay_apart(tmp_path: Path) -> None:
    texts = [LONG + "a", LONG + "b", None, "short", LONG + "a"]
    rows = {"topic": pa.array(texts), "number": pa.array(range(5)), "left": pa.array(["out"] * 5)}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    copy_shortened(tmp_path / "rows.parquet", tmp_path / "short.parquet", {"topic", "number"})
    copied = pq.read_table(tmp_path / "short.parquet")
    assert copied.schema.names == ["topic", "number"]
    first, second, nothing, short, again = copied["topic"].to_pylist()
    assert first == again != second
    assert (nothing, short) == (None, "short")
    assert len(first) < MOST
    assert copied["number"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_file_without_rows_is_copied(tmp_path: Path) -> None:
    pq.write_table(pa.table({"topic": pa.array([], pa.string())}), tmp_path / "rows.parquet")
    copy_shortened(tmp_path / "rows.parquet", tmp_path / "short.parquet", None)
    assert pq.read_table(tmp_path / "short.parquet").num_rows == 0


def test_texts_of_one_row_group_are_in_memory_at_a_time(tmp_path: Path) -> None:
    """A capture may name so many: 40 groups of 4 MB, whose texts together are 160 MB."""
    texts = pa.array([f"{number:06}".ljust(40_000, "x") for number in range(100)]).dictionary_encode()
    rows = pa.table({"topic": texts})
    with pq.ParquetWriter(tmp_path / "rows.parquet", rows.schema, dictionary_pagesize_limit=1 << 30) as file:
        for _ in range(40):
            file.write_table(rows)
    before = pa.total_allocated_bytes()
    most = pa.default_memory_pool().max_memory()
    copy_shortened(tmp_path / "rows.parquet", tmp_path / "short.parquet", None)
    assert pq.ParquetFile(tmp_path / "short.parquet").metadata.num_rows == 4000
    assert pa.default_memory_pool().max_memory() <= max(most, before + 60_000_000)
