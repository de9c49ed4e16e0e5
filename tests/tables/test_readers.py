"""The programs people read parquet with see the declared columns, types and values."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import one_by_one, vocabulary

pytestmark = pytest.mark.sample_tests(4)

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = ("first_steps", "transactions", "group_classic")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of recorded and generated calls; every one has rows."""
    folder = tmp_path_factory.mktemp("tables")
    generated = folder / "generated.pcap"
    packets = one_by_one(vocabulary()).packets()
    generated.write_bytes(pcap(frames(packets)))
    files = [next(path for path in (CAPTURES / name).iterdir() if "pcap" in path.suffix) for name in RECORDED]
    stalled = CAPTURES / "field" / "nagle_40ms.pcap"
    places = [CAPTURES / "clocks" / "near" / f"{place}.pcap" for place in ("client", "broker")]
    kwsniff.analyze([*files, stalled, *places, generated], output=folder / "out")
    return folder / "out"


def expected(folder: Path, name: str) -> pa.Table:
    return pq.ParquetFile(folder / f"{name}.parquet").read()


def test_every_table_has_rows(folder: Path) -> None:
    assert all(expected(folder, name).num_rows for name in TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_pandas_reads_every_table(folder: Path, name: str) -> None:
    path = folder / f"{name}.parquet"
    exact = pd.read_parquet(path, dtype_backend="pyarrow")
    schema = arrow_schema(TABLES[name])
    assert [(column, kind.pyarrow_dtype) for column, kind in exact.dtypes.items()] == [
        (field.name, field.type) for field in schema
    ]
    plain = pd.read_parquet(path)
    assert len(plain) == expected(folder, name).num_rows
    for column in TABLES[name].columns:
        if column.null is None and column.type in ("int16", "int32", "int64", "bool"):
            assert str(plain[column.name].dtype) == column.type
        if column.type == "time":
            assert str(plain[column.name].dtype) == "datetime64[us, UTC]"


@pytest.mark.parametrize("name", TABLES)
def test_duckdb_reads_every_table(folder: Path, name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    types = {
        "bool": "BOOLEAN",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "double": "DOUBLE",
        "integers": "BIGINT[]",
        "string": "VARCHAR",
        "strings": "VARCHAR[]",
        "time": "TIMESTAMP WITH TIME ZONE",
    }
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as database:
        found = database.read_parquet(str(folder / f"{name}.parquet"))
        told = list(zip(found.columns, map(str, found.types), strict=True))
        assert told == [(column.name, types[column.type]) for column in TABLES[name].columns]
        table = expected(folder, name)
        for column in TABLES[name].columns:
            if column.type in ("int16", "int32", "int64"):
                (number, total), *_ = found.aggregate(
                    f'count("{column.name}"), sum("{column.name}")'
                ).fetchall()
                values = table[column.name]
                assert number == len(values) - values.null_count
                assert total == pc.sum(values.cast(pa.int64())).as_py()
            elif column.type == "string":
                (distinct,), *_ = found.aggregate(f'count(DISTINCT "{column.name}")').fetchall()
                assert distinct == pc.count_distinct(table[column.name]).as_py()


@pytest.mark.parametrize("name", TABLES)
def test_polars_reads_every_table(folder: Path, name: str) -> None:
    polars = pytest.importorskip("polars")
    types: dict[str, Any] = {
        "bool": polars.Boolean,
        "int16": polars.Int16,
        "int32": polars.Int32,
        "int64": polars.Int64,
        "double": polars.Float64,
        "integers": polars.List(polars.Int64),
        "string": polars.String,
        "strings": polars.List(polars.String),
        "time": polars.Datetime("us", "UTC"),
    }
    found = polars.read_parquet(folder / f"{name}.parquet")
    assert dict(found.schema) == {column.name: types[column.type] for column in TABLES[name].columns}
    assert found.to_dicts() == expected(folder, name).to_pylist()


@pytest.mark.slow
def test_spark_reads_every_table(spark: Any, folder: Path) -> None:
    for name, table in TABLES.items():
        found = spark.read.parquet(str(folder / f"{name}.parquet"))
        told = ", ".join(
            f"`{field.name}` {field.dataType.simpleString().upper()}" for field in found.schema.fields
        )
        assert told == spark_ddl(table)
        assert found.count() == expected(folder, name).num_rows


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """api_calls of many small row groups, as a long capture has large ones."""
    folder = tmp_path_factory.mktemp("cut")
    capture = folder / "capture.pcap"
    capture.write_bytes(pcap(frames(one_by_one(vocabulary() * 10).packets())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kwsniff.timelines.row_path.ROW_GROUP_ROWS", 16)
        patch.setattr("kwsniff.sources.files.BUFFER_BYTES", 512)
        kwsniff.analyze(capture, output=folder / "out")
    return folder / "out"


def groups_read(path: Path, filter_: Any) -> tuple[int, int]:
    """Row groups that a filter leaves, and how many there are."""
    (fragment,) = ds.dataset(path).get_fragments()
    return len(fragment.split_by_row_group(filter_)), fragment.num_row_groups


@pytest.mark.parametrize("name", ["api_calls", "latencies"])
def test_a_filter_on_time_reads_the_row_groups_of_that_time(cut: Path, name: str) -> None:
    path = cut / f"{name}.parquet"
    times = sorted(pq.ParquetFile(path).read(["request_time"])["request_time"].to_pylist())
    middle = times[len(times) // 2]  # rows that wait for a proof come up to a second after others
    read, there = groups_read(path, (ds.field("request_time") == middle))
    assert there >= 8
    assert 1 <= read <= 2
    later, _ = groups_read(path, ds.field("request_time") >= middle)
    assert there // 2 - 1 <= later <= there // 2 + 2


def groups_that_may_hold(path: Path, column: str, least: Any, greatest: Any) -> int:
    """Row groups whose statistics do not rule out a value from `least` to `greatest`.

    What a reader could skip; pyarrow itself keeps more where there are nulls.
    """
    metadata = pq.read_metadata(path)
    place = arrow_schema(TABLES[path.stem]).names.index(column)
    chunks = [metadata.row_group(n).column(place).statistics for n in range(metadata.num_row_groups)]
    return sum(chunk.has_min_max and chunk.min <= greatest and chunk.max >= least for chunk in chunks)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("column", "least", "greatest"),
    [
        ("api_key", 90, 94),
        ("api_name", "ZetaPotential", "ZetaPotential"),
        ("client_id", "zeppelin", "zeppelin"),
        ("group_id", "zoo", "zoo"),
        ("latency_ns", 3_600_000_000_000, 1 << 62),
        ("error_code", 200, 300),
        ("status", "zero", "zero"),
    ],
)
def test_statistics_rule_out_what_is_not_there(cut: Path, column: str, least: Any, greatest: Any) -> None:
    assert groups_that_may_hold(cut / "api_calls.parquet", column, least, greatest) == 0


def test_a_filter_skips_row_groups_in_which_an_api_cannot_be(cut: Path) -> None:
    path = cut / "api_calls.parquet"
    rows = pq.ParquetFile(path)
    for name in ("ApiVersions", "SyncGroup"):
        kept = {
            group
            for group in range(rows.num_row_groups)
            if name in rows.read_row_group(group, ["api_name"])["api_name"].to_pylist()
        }
        read, there = groups_read(path, ds.field("api_name") == name)
        assert len(kept) <= read < there


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", TABLES)
def test_columns_with_statistics_have_them_and_no_others(folder: Path, name: str) -> None:
    group = pq.ParquetFile(folder / f"{name}.parquet").metadata.row_group(0)
    told = {}
    for place in range(group.num_columns):
        chunk = group.column(place)
        told[chunk.path_in_schema.split(".")[0]] = chunk.is_stats_set
    assert told == {column.name: column.statistics for column in TABLES[name].columns}
