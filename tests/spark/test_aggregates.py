"""Aggregates say what the rows say: counted again by DuckDB, from the tables of `kwsniff.analyze`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import duckdb
import pyarrow as pa

import kwsniff
from kwsniff.spark.aggregates import QUERIES
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import RUN
from kwsniff.tables.folder import MANIFEST
from kwsniff.tables.schema import arrow_schema

# ruff: noqa: S608 - put together of constants only

CAPTURES = Path(__file__).parents[2] / "captures"
WHO = "api_key, api_name, client_id, broker_address, broker_port"
WHEN = "coalesce(request_time, response_time)"
AGAIN = {
    "latency_minutes": f"""
        with each as (select date_trunc('minute', {WHEN}) as minute, {WHO}, latency_ns,
            unnest(case when len(topics) > 0 then topics else [null] end) as topic
            from api_calls where latency_ns is not null)
        select minute, {WHO}, topic, count(*) as calls, sum(latency_ns)::bigint as sum_ns,
            max(latency_ns) as max_ns, quantile_disc(latency_ns, 0.5) as p50_ns,
            quantile_disc(latency_ns, 0.95) as p95_ns, quantile_disc(latency_ns, 0.99) as p99_ns
        from each group by all""",
    "error_rates": f"""
        select date_trunc('minute', {WHEN}) as minute, {WHO}, count(*) as calls,
            count(*) filter (where status = 'answered') as answered,
            count(*) filter (where error_count > 0) as failed,
            count(*) filter (where status = 'unanswered') as unanswered,
            coalesce(sum(error_count), 0)::bigint as errors
        from api_calls group by all""",
    "error_counts": f"""
        select date_trunc('minute', response_time) as minute, {WHO}, topic, error_code, error_name,
            count(*) as errors, count(distinct call_id) as calls
        from error_codes group by all""",
    "talkers": f"""
        select date_trunc('hour', {WHEN}) as hour, client_address, client_id, broker_address, broker_port,
            count(*) as calls, coalesce(sum(request_bytes), 0)::bigint as request_bytes,
            coalesce(sum(response_bytes), 0)::bigint as response_bytes,
            coalesce(sum(case when api_key = 0 then record_count end), 0)::bigint as records_produced,
            coalesce(sum(case when api_key = 1 then record_count end), 0)::bigint as records_fetched
        from api_calls group by all""",
    "rebalances": """
        select date_trunc('hour', coalesce(begin_time, end_time)) as hour, group_id, kind, reason,
            count(*) as rebalances, coalesce(sum(error_count), 0)::bigint as errors,
            sum(duration_ns)::bigint as sum_ns, max(duration_ns) as max_ns
        from groups group by all""",
    "client_versions": """
        select date_trunc('day', first_time) as day, client_software_name, client_software_version, client_id,
            count(*) as connections, sum(calls)::bigint as calls,
            list_sort(list_distinct(list(client_address))) as client_addresses
        from connections where protocol like 'kafka%' group by all""",
}


@pytest.fixture(scope="module")
def capture() -> Path:
    return CAPTURES / "versions_4_4" / "capture.pcap"


@pytest.fixture(scope="module")
def made(spark: Any, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aggregates") / "out"
    run_pipeline(capture, folder, spark=spark, num_buckets=2)
    return folder


def rows(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    return sorted(table.select(names).to_pylist(), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_is_what_its_rows_add_up_to(spark: Any, made: Path, capture: Path, name: str) -> None:
    schema = arrow_schema(AGGREGATES[name])
    dated = spark.read.parquet(str(made / name)).toArrow()
    days = [time and time.date() for time in dated[QUERIES[name].time].to_pylist()]
    assert dated["date"].to_pylist() == days
    found = dated.drop_columns(["date"])
    assert found.schema.names == schema.names
    assert [str(field.type) for field in found.cast(schema).schema] == [str(field.type) for field in schema]
    result = kwsniff.analyze(capture)
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        for table in ("api_calls", "error_codes", "groups", "connections"):
            database.register(table, result.table(table))
        wanted = database.sql(AGAIN[name]).to_arrow_table()
    names = [each for each in schema.names if each not in ("sketch", RUN)]
    again = pa.table({each: wanted[each].cast(schema.field(each).type) for each in names})
    assert found.num_rows > 0
    assert found[RUN].unique().to_pylist() == [json.loads((made / MANIFEST).read_text())[RUN]]
    assert rows(found.cast(schema), names) == rows(again, names)


@pytest.mark.slow
def test_sketches_of_minutes_add_up_to_the_whole(spark: Any, made: Path, capture: Path) -> None:
    """Merged over all keys of calls without topics, they tell the percentiles of these calls."""
    import numpy as np

    merged = spark.sql(
        "select kll_sketch_get_n_bigint(s) as n, kll_sketch_get_quantile_bigint(s, 0.5d) as p50 from "
        "(select kll_merge_agg_bigint(sketch) as s from {minutes} where topic is null)",
        minutes=spark.read.parquet(str(made / "latency_minutes")),
    ).collect()[0]
    calls = kwsniff.analyze(capture).api_calls.to_pylist()
    latencies = np.sort(
        [row["latency_ns"] for row in calls if row["latency_ns"] is not None and not row["topics"]]
    )
    assert merged["n"] == len(latencies)
    low, high = (latencies[int(len(latencies) * share)] for share in (0.45, 0.55))
    assert low <= merged["p50"] <= high


@pytest.mark.slow
def test_aggregates_alone_leave_no_other_tables(spark: Any, capture: Path, tmp_path: Path) -> None:
    made = run_pipeline(capture, tmp_path / "out", spark=spark, num_buckets=1, tables=["talkers"])
    assert list(made.rows) == ["talkers"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_kwsniff.json", "talkers"]
