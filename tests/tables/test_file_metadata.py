"""Every parquet file says what its columns are."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES

CAPTURE = Path(__file__).resolve().parents[2] / "captures" / "first_steps" / "capture.pcap"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    kwsniff.analyze(CAPTURE, output=place)
    return place


def check_file(path: Path) -> None:
    """Fields of Arrow, and the file's own keys, for readers without Arrow."""
    name = path.stem if path.stem in TABLES else path.parent.parent.name
    table = {**TABLES, **AGGREGATES}[name]
    schema = pq.read_schema(path)
    keys = pq.read_metadata(path).metadata
    assert keys[b"kwsniff.schema_version"] == b"1"
    described = json.loads(keys[b"kwsniff.columns"])
    assert [*described] == schema.names == [column.name for column in table.columns]
    for column in table.columns:
        text = schema.field(column.name).metadata[b"description"].decode()
        assert text == described[column.name]
        assert text.split("[")[0].startswith(column.doc.split("[")[0])
        assert "](" not in text


def test_files_of_analyze(folder: Path) -> None:
    files = sorted(folder.glob("*.parquet"))
    assert {path.stem for path in files} == set(TABLES)
    for path in files:
        check_file(path)


def test_readers_see_plain_types(folder: Path) -> None:
    """Arrow's schema in the file must not bring back the dictionaries of the run."""
    for path in folder.glob("*.parquet"):
        assert not any(pa.types.is_dictionary(field.type) for field in pq.read_schema(path))


def test_another_reader_finds_the_descriptions(folder: Path) -> None:
    path = folder / "latencies.parquet"
    query = "select decode(value) from parquet_kv_metadata(?) where decode(key) = 'kwsniff.columns'"
    ((value,),) = duckdb.execute(query, [str(path)]).fetchall()
    assert json.loads(value)["total_ns"].endswith("In nanoseconds.")


def test_frames_of_pandas_have_the_descriptions(folder: Path) -> None:
    files, found = pd.read_parquet(folder / "latencies.parquet"), kwsniff.open(folder)
    frames = (files, found.latencies.to_pandas(), kwsniff.analyze(CAPTURE).latencies.to_pandas())
    for frame in frames:
        assert frame.attrs["total_ns"].endswith("In nanoseconds.")
        assert [*frame.attrs] == [*frame.columns]
        # What is computed from a frame keeps them.
        assert frame[frame["total_ns"] > 0].attrs == files.attrs
