"""`spark.read.format("kafka_capture")` gives what `kwsniff.analyze` gives, as the declared types."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, spark_ddl

NUMBERING = ("call_id", "connection_id", RUN)


def read(spark: Any, *paths: object, **options: str) -> Any:
    return spark.read.format("kafka_capture").options(**options).load([str(path) for path in paths])


def rows(table: Any) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in NUMBERING} for row in table.to_pylist()
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_the_declared_schema_and_the_rows_of_analyze(
    spark: Any, capture: Path, table: str
) -> None:
    from pyspark.sql.types import StructType

    frame = read(spark, capture, table=table)
    assert frame.schema == StructType.fromDDL(spark_ddl(TABLES[table]))
    assert rows(frame.toArrow()) == rows(kwsniff.analyze(capture).table(table))


def test_rows_are_those_of_the_recording(spark: Any, capture: Path) -> None:
    """Counts of the recording's requests, as its own description has them."""
    import tomllib

    about = tomllib.loads(capture.with_name("about.toml").read_text("utf-8"))
    found = read(spark, capture).where("request_frame is not null").groupBy("api_name").count().collect()
    assert {row["api_name"]: row["count"] for row in found} == about["requests"]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["api_calls", "latencies", "groups"])
def test_several_analyzers_give_the_same_rows_in_the_same_order(
    spark: Any, capture: Path, table: str
) -> None:
    alone = rows(read(spark, capture, table=table, jobs="1").toArrow())
    assert rows(read(spark, capture, table=table, jobs="3").toArrow()) == alone
    assert alone


@pytest.mark.slow
def test_a_part_by_time_is_that_of_analyze(spark: Any, capture: Path) -> None:
    found = rows(read(spark, capture, since="+1s", until="+2s").toArrow())
    assert found == rows(kwsniff.analyze(capture, since="+1s", until="+2s").api_calls)
    assert 0 < len(found) < kwsniff.analyze(capture).api_calls.num_rows


@pytest.mark.slow
def test_folders_patterns_and_compressed_files_are_read(spark: Any, capture: Path, tmp_path: Path) -> None:
    data = capture.read_bytes()
    (tmp_path / "a.pcap.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.txt").write_text("no capture")
    wanted = [row | {"capture": None} for row in rows(kwsniff.analyze(capture).error_codes)]
    for path in (tmp_path, tmp_path / "*.gz", tmp_path / "a.pcap.gz"):
        found = rows(read(spark, path, table="error_codes").toArrow())
        assert {row["capture"] for row in found} == {str(tmp_path / "a.pcap.gz")}
        assert [row | {"capture": None} for row in found] == wanted


def test_a_schema_given_by_the_user_chooses_columns(spark: Any, capture: Path) -> None:
    ddl = "latency_ns bigint, topics array<string>, api_name string"
    frame = spark.read.format("kafka_capture").schema(ddl).load(str(capture))
    assert frame.columns == ["latency_ns", "topics", "api_name"]
    assert frame.toArrow().to_pylist() == kwsniff.analyze(capture).api_calls.select(frame.columns).to_pylist()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "where",
    [
        "api_name = 'Metadata'",
        "api_name <=> 'Metadata' and error_count > 0",
        "latency_ns >= 2000000 and latency_ns < 20000000",
        "api_key in (3, 18) and client_id is not null",
        "group_id is null and client_id like '%prod%'",
        "client_id like 'shop%' or api_key = 1",
        "request_time > timestamp'2026-11-20 18:09:15'",
        "not (error_code = 0)",
        "array_contains(topics, 'orders') and client_id like '%-1'",
    ],
)
def test_filters_taken_by_the_source_give_the_rows_of_filters_in_spark(
    spark: Any, capture: Path, where: str
) -> None:
    plain = read(spark, capture).where(where)
    pushed = read(spark, capture, pushdown="true").where(where)
    assert plain.count() > 0
    assert pushed.toArrow().drop_columns(list(NUMBERING)).to_pylist() == (
        plain.toArrow().drop_columns(list(NUMBERING)).to_pylist()
    )


def test_a_filter_that_the_source_took_is_named_and_not_evaluated_again(
    spark: Any, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = read(spark, capture, pushdown="true").where("api_key = 3")
    assert "Filter (api_key" not in frame._jdf.queryExecution().toString().partition("Physical Plan")[2]
    capsys.readouterr()
    frame.explain("formatted")
    assert "PushedFilters: [IsNotNull(api_key), EqualTo(api_key,3)]" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "calls"}, "unknown table 'calls'"),
        ({"limit": "connections"}, "give a name and a whole number"),
        ({"prot": "9092"}, "unknown option .prot. of the data source; did you mean port"),
        ({"jobs": "0"}, "give a number from 1 to 64"),
        ({"jobs": "all"}, "give a number from 1 to 64"),
        ({"path": "nowhere.pcap"}, "no such file"),
        ({"recursiveFileLookup": "maybe"}, "give true or false"),
        ({"modifiedAfter": "-1h"}, "give a date and time"),
        ({"port": "kafka"}, "give a number from 1 to 65535"),
        ({"pathGlobFilter": "*.zip"}, "none of the files there is chosen"),
        ({"path": "nowhere/*.pcap"}, "no file matches"),
    ],
)
def test_bad_usage_says_what_is_wrong(spark: Any, capture: Path, options: dict[str, str], words: str) -> None:
    path = options.pop("path", str(capture))
    with pytest.raises(Exception, match=words) as told:
        read(spark, path, **options).count()
    assert "Traceback" not in str(told.value)
    assert str(told.value).partition("SQLSTATE")[0].strip().count("\n") == 0


@pytest.mark.slow
def test_the_source_is_found_by_name_in_a_session_that_was_not_told(
    spark: Any, tmp_path: Path, capture: Path
) -> None:
    """Spark imports packages called pyspark_...; the wheel has one. (`spark`: where Java is.)"""
    root = Path(__file__).parents[2]
    (tmp_path / "pyspark_kafka_capture").symlink_to(root / "kwsniff" / "spark" / "found_by_name")
    script = (
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')\n"
        "session = builder.config('spark.driver.memory', '512m').getOrCreate()\n"
        "assert not [name for name in sys.modules if name.startswith('kwsniff')]\n"
        "print(session.read.format('kafka_capture').load(sys.argv[1]).count())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(capture)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}", "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == kwsniff.analyze(capture).api_calls.num_rows


@pytest.mark.slow
def test_tables_read_one_by_one_are_of_one_run_when_told_so(spark: Any, capture: Path) -> None:
    calls = read(spark, capture, run_id="monday").select(RUN, "call_id", "latency_ns")
    latencies = read(spark, capture, table="latencies", run_id="monday").select(RUN, "call_id", "total_ns")
    joined = calls.join(latencies, [RUN, "call_id"])
    assert joined.count() == latencies.count() > 0
    assert joined.where("latency_ns != total_ns").count() == 0


@pytest.mark.slow
def test_tables_of_the_same_captures_are_of_one_run(spark: Any, capture: Path, tmp_path: Path) -> None:
    """Other bytes, or other options, make another one."""
    path = tmp_path / "a.pcap"
    path.write_bytes(capture.read_bytes())
    latencies = read(spark, path, table="latencies")
    joined = read(spark, path).join(latencies, [RUN, "call_id"])
    assert joined.count() == latencies.count() > 0
    assert joined.where("latency_ns != total_ns").count() == 0

    def runs(**options: str) -> set[str]:
        return {row[RUN] for row in read(spark, path, **options).select(RUN).collect()}

    first = runs()
    assert len(first) == 1
    assert runs(jobs="2") == first
    assert runs(limit="connections=5000") != first
    path.write_bytes(capture.read_bytes()[:-5])
    assert runs() != first


@pytest.mark.slow
def test_a_table_made_with_create_table_is_read_with_its_options(
    spark: Any, capture: Path, tmp_path: Path
) -> None:
    """Spark hands them to no reader; what the query says comes before them."""
    from pyspark.sql.types import StructType

    other = tmp_path / "other.pcap"
    other.write_bytes(capture.read_bytes())
    made = f"using kafka_capture options (path '{capture}', table 'error_codes', run_id 'monday')"
    spark.sql(f"create table captured {made}")
    try:
        frame = spark.table("captured")
        wanted = StructType.fromDDL(spark_ddl(TABLES["error_codes"]))
        assert frame.schema.simpleString() == wanted.simpleString()
        assert rows(frame.toArrow()) == rows(kwsniff.analyze(capture).error_codes)
        assert {row[RUN] for row in frame.select(RUN).collect()} == {"monday"}
        said = {"path": str(other)}
        found = spark.read.options(**said).table("captured").select("capture").distinct().collect()
        assert [row["capture"] for row in found] == [str(other)]
    finally:
        spark.sql("drop table captured")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("options (path '{0}', prot '9092')", "unknown option .prot. of the data source; did you mean port"),
        ("options (path '{0}', table 'calls')", "unknown table 'calls'"),
        ("options (port '9092')", "no capture was named"),
    ],
)
def test_a_table_that_could_not_be_read_is_not_created(
    spark: Any, capture: Path, made: str, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        spark.sql(f"create table never using kafka_capture {made.format(capture)}")
    assert not spark.catalog.tableExists("never")


@pytest.mark.slow
def test_a_stream_of_sparks_own_is_refused_in_one_line(spark: Any, capture: Path, tmp_path: Path) -> None:
    frame = spark.readStream.format("kafka_capture").load(str(capture))
    query = frame.writeStream.format("memory").queryName("other").option("checkpointLocation", str(tmp_path))
    with pytest.raises(
        Exception, match="does not support readStream; follow a directory with kwsniff pipeline --stream"
    ):
        query.start().awaitTermination()
