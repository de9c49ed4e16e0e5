"""The aggregates: one query each over the tables of a run, declared in kwsniff/tables/aggregates.py."""

from collections.abc import Sequence
from string import Template
from typing import TYPE_CHECKING, Final, NamedTuple

from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.traits import RECORDS
from kwsniff.spark.parts import Part, write_empty
from kwsniff.spark.storage import Place
from kwsniff.spark.table_frames import read_table, write_frame
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Query(NamedTuple):
    """`sql` over `{source}`; `time`: the column that says the day. `$produced` and `$fetched` are the keys of
    APIs whose layouts say so."""

    source: str
    time: str
    sql: str

    def text(self, layouts: str | None = None) -> str:
        """With the keys in it, also of a vendor's layouts."""
        traits = {key: api.traits.records for key, api in load_catalog(layouts).apis.items()}
        keys = {word: ", ".join(str(key) for key, said in traits.items() if said == word) for word in RECORDS}
        return Template(self.sql).substitute(keys)


_WHEN: Final = "coalesce(request_time, response_time)"
_WHO: Final = "api_key, api_name, client_id, broker_address, broker_port"

# ruff: noqa: S608 - put together of constants only

QUERIES: Final = {
    "latency_minutes": Query(
        "api_calls",
        "minute",
        f"""
        with timed as (
            select date_trunc('minute', {_WHEN}) as minute, {_WHO}, topic, latency_ns
            from {{source}} lateral view outer explode(topics) as topic
            where latency_ns is not null
        ), sketched as (
            select minute, {_WHO}, topic, count(*) as calls, sum(latency_ns) as sum_ns,
                max(latency_ns) as max_ns, kll_sketch_agg_bigint(latency_ns) as sketch
            from timed group by minute, {_WHO}, topic
        )
        select *, kll_sketch_get_quantile_bigint(sketch, 0.5d) as p50_ns,
            kll_sketch_get_quantile_bigint(sketch, 0.95d) as p95_ns,
            kll_sketch_get_quantile_bigint(sketch, 0.99d) as p99_ns
        from sketched
        """,
    ),
    "error_rates": Query(
        "api_calls",
        "minute",
        f"""
        select date_trunc('minute', {_WHEN}) as minute, {_WHO}, count(*) as calls,
            count_if(status = 'answered') as answered, count_if(error_count > 0) as failed,
            count_if(status = 'unanswered') as unanswered, coalesce(sum(error_count), 0) as errors
        from {{source}} group by all
        """,
    ),
    "error_counts": Query(
        "error_codes",
        "minute",
        f"""
        select date_trunc('minute', response_time) as minute, {_WHO}, topic, error_code, error_name,
            count(*) as errors, count(distinct call_id) as calls
        from {{source}} group by all
        """,
    ),
    "talkers": Query(
        "api_calls",
        "hour",
        f"""
        select date_trunc('hour', {_WHEN}) as hour, client_address, client_id, broker_address, broker_port,
            count(*) as calls, coalesce(sum(request_bytes), 0) as request_bytes,
            coalesce(sum(response_bytes), 0) as response_bytes,
            coalesce(sum(record_count) filter (where api_key in ($produced)), 0) as records_produced,
            coalesce(sum(record_count) filter (where api_key in ($fetched)), 0) as records_fetched
        from {{source}} group by all
        """,
    ),
    "rebalances": Query(
        "groups",
        "hour",
        """
        select date_trunc('hour', coalesce(begin_time, end_time)) as hour, group_id, kind, reason,
            count(*) as rebalances, coalesce(sum(error_count), 0) as errors, sum(duration_ns) as sum_ns,
            max(duration_ns) as max_ns
        from {source} group by all
        """,
    ),
    "client_versions": Query(
        "connections",
        "day",
        """
        select date_trunc('day', first_time) as day, client_software_name, client_software_version, client_id,
            count(*) as connections, sum(calls) as calls,
            slice(array_sort(collect_set(client_address)), 1, 100) as client_addresses
        from {source} where protocol like 'kafka%' group by all
        """,
    ),
}


OLDER_SKETCH: Final = f"""
    with timed as (
        select date_trunc('minute', {_WHEN}) as minute, {_WHO}, topic, latency_ns
        from {{source}} lateral view outer explode(topics) as topic
        where latency_ns is not null
    ), ranked as (
        select minute, {_WHO}, topic, count(*) as calls, sum(latency_ns) as sum_ns, max(latency_ns) as max_ns,
            percentile_approx(latency_ns, array(0.5d, 0.95d, 0.99d), 10000) as ranks
        from timed group by minute, {_WHO}, topic
    )
    select *, cast(null as binary) as sketch, ranks[0] as p50_ns, ranks[1] as p95_ns, ranks[2] as p99_ns
    from ranked
    """
"""`latency_minutes` where Spark has no sketches, before 4.1: the percentiles, and none to add up."""


def has_sketches(spark: "SparkSession") -> bool:
    """Whether this Spark has KLL sketches."""
    major, minor = (int(word) for word in spark.version.split(".")[:2])
    return (major, minor) >= (4, 1)


def aggregate(
    spark: "SparkSession",
    name: str,
    place: Place,
    parts: Sequence[Part],
    *,
    run_id: str,
    layouts: str | None = None,
) -> "DataFrame":
    """One aggregate of the tables of a run in a place, with the declared types, and the day as `date`."""
    from pyspark.sql.functions import lit

    query = QUERIES[name]
    if name == "latency_minutes" and not has_sketches(spark):
        query = query._replace(sql=OLDER_SKETCH)
    text = query.text(layouts)
    source = _once(spark, query.source, place, parts, text)
    computed = spark.sql(text, source=source)
    columns = [f"cast(`{each.name}` as {spark_type(each)}) as `{each.name}`" for each in AGGREGATES[name].own]
    typed = computed.selectExpr(*columns, f"to_date(`{query.time}`) as `date`")
    return typed.withColumn(RUN, lit(run_id))


def _once(spark: "SparkSession", source: str, place: Place, parts: Sequence[Part], text: str) -> "DataFrame":
    """Without what connections that are twins of others brought."""
    table = TABLES[source]
    names = {each.name for each in table.columns}
    rows = read_table(spark, place, table, parts, f"{text} connection_id twin_of {RUN}")
    if "twin_of" in names:
        return rows.where("twin_of is null")
    if "connection_id" not in names:
        return rows
    known = read_table(spark, place, TABLES["connections"], parts, f"connection_id twin_of {RUN}")
    twins = known.where("twin_of is not null").select("connection_id", RUN)
    return rows.join(twins, ["connection_id", RUN], "left_anti")


def write_aggregates(
    spark: "SparkSession",
    names: Sequence[str],
    place: Place,
    parts: Sequence[Part],
    *,
    target: Place | None = None,
    run_id: str,
    layouts: str | None = None,
) -> list[Part]:
    """Writes aggregates of the tables in one place into another, or the same."""
    made: list[Part] = []
    for name in names:
        frame = aggregate(spark, name, place, parts, run_id=run_id, layouts=layouts)
        written = write_frame(frame, name, QUERIES[name].time, target or place)
        made += written or [write_empty(target or place, AGGREGATES[name])]
    return made
