"""Rows of Python values become batches, and parquet that others read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.tables import rows, schema, write
from kwsniff.tables.column import Column, TableSchema, TypeWord


def column(name: str, type_: TypeWord) -> Column:
    return Column(name=name, type=type_, doc=name, source="here", null="none")


MADE = TableSchema(
    name="made",
    row="one made here",
    doc="",
    columns=(column("share", "double"), column("ids", "integers"), column("words", "strings")),
)
ROWS = [
    {"share": 0.5, "ids": [3, 1 << 62, -1], "words": ["a"]},
    {"share": None, "ids": None, "words": None},
    {"share": -1e300, "ids": [], "words": []},
    {"share": 2, "ids": [1 << 80], "words": ["b", "a"]},
]
READ = [*ROWS[:3], {"share": 2.0, "ids": [(1 << 63) - 1], "words": ["b", "a"]}]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> pa.RecordBatch:
    monkeypatch.setitem(schema.TABLES, "made", MADE)
    made = rows.batch_of("made", ROWS)
    made.validate(full=True)
    return made


def test_floats_and_lists_of_integers_become_what_spark_and_arrow_call_so(batch: pa.RecordBatch) -> None:
    assert batch.to_pylist() == READ
    assert batch.schema.field("share").type == pa.float64()
    assert batch.schema.field("ids").type == pa.list_(pa.field("element", pa.int64()))
    assert schema.spark_ddl(MADE) == "`share` DOUBLE, `ids` ARRAY<BIGINT>, `words` ARRAY<STRING>"


def test_they_are_picked_as_the_values_they_were(batch: pa.RecordBatch) -> None:
    chosen = np.array([True, True, False, True])
    picked = list(rows.pick(batch, chosen, ("ids", "share")))
    assert picked == [(READ[0]["ids"], 0.5), (None, None), (READ[3]["ids"], 2.0)]


def test_parquet_keeps_them(batch: pa.RecordBatch, tmp_path: Path) -> None:
    path = tmp_path / "made.parquet"
    with pq.ParquetWriter(str(path), batch.schema, **write.encoding(MADE)) as writer:
        writer.write_table(pa.Table.from_batches([batch]))
    assert pq.read_table(path).to_pylist() == READ
