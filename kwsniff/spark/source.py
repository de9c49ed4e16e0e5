"""The Spark data source `kafka_capture`: captures as DataFrames, one table per read.

Options: `table` (api_calls), `port` and `limit` as on the command line (`9092,9093`, `connections=1000`),
`since` and `until` alike, `tls_keylog`, `layouts` (a folder of a vendor's layouts), `jobs` (analyzers that
share out the connections), `run_id` (for tables of one run that are read one by one; else every read has its
own), `pushdown` (false; true needs spark.sql.python.filterPushdown.enabled, which kwsniff's own sessions
have). A schema given by the user chooses columns, the only way in which Spark prunes those of Python sources.

`create table ... using kafka_capture`: Spark keeps such a table's options, but hands them to no reader of a
Python source (4.0 to 4.3); its schema it does hand over. So the schema of a table carries them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructField, StructType

from kwsniff.analysis.parallelism import MOST
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import named_layouts
from kwsniff.sources.paths import local_path
from kwsniff.sources.times import TimeRange
from kwsniff.spark.pushdown import Condition, condition
from kwsniff.tables.run import check_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl
from kwsniff.temporary import temporary_folder
from kwsniff.texts import suggest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

_BATCH_ROWS = 10_000
_TRUE = ("true", "1", "yes")
OPTIONS: Final = (
    "table", "port", "limit", "since", "until", "tls_keylog", "layouts", "jobs", "run_id", "pushdown",
)  # fmt: skip
_SPARKS_OWN: Final = ("path", "paths", "serialization.format")
_CREATED: Final = "provider"
"""What Spark says besides the options where a table is created."""
_OF_TABLE: Final = "option."
"""What it puts before the names of options of such a table, of all but the path."""
_CARRIED: Final = "kafka_capture"


class CaptureSource(DataSource):
    """`spark.read.format("kafka_capture")`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "kafka_capture"

    def schema(self) -> StructType | str:
        """The table's declared schema; of a table that is being created, with its options."""
        table = TABLES[table_of(self.options)]
        if _CREATED not in self.options:
            return spark_ddl(table)
        given = _options_of_table(self.options)
        check_options(given)
        paths_of(given)
        return _carrying(arrow_schema(table), given)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns; one that takes filters only on request: Spark may refuse it."""
        # By default Spark fails with a reader that takes filters, whatever the query.
        options = _pack_options(schema) | {name.lower(): value for name, value in self.options.items()}
        takes_filters = str(options.get("pushdown", "false")).lower() in _TRUE
        if takes_filters and not hasattr(datasource, "Filter"):
            raise UsageError(
                "this Spark passes no filters to Python sources, only 4.1 and later do; omit pushdown"
            )
        return (FilteringReader if takes_filters else CaptureReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Not supported: connections continue from batch to batch, and Spark keeps no state for a source."""
        raise UsageError(
            "kafka_capture does not support readStream; follow a directory with kwsniff pipeline --stream "
            "DIR "
            "-o TABLES, and read its tables"
        )


@dataclass
class Whole(InputPartition):
    """All captures, in order, because connections continue from one to the next."""

    names: tuple[str, ...]


class CaptureReader(DataSourceReader):
    """Analyzes the captures in one task and hands on the rows of one table.

    One task, since every bucket needs what others know (names of topics, twins, what groups and followers
    did): tasks that do not talk to each other would each have to follow all connections. Inside it several
    analyzers share the connections out.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        check_options(options)
        self.table = table_of(options)
        self.paths = paths_of(options)
        self.ports = tuple(int(port) for port in _words(options.get("port", "")))
        self.limits = {name: int(value) for name, value in map(_limit, _words(options.get("limit", "")))}
        self.keylog = _words(options.get("tls_keylog", "")) or None
        self.since, self.until = options.get("since"), options.get("until")
        TimeRange(self.since, self.until)  # says now what is wrong with them
        # Resolved here, in the caller's environment, and passed to tasks.
        self.layouts = named_layouts(options.get("layouts"))
        self.jobs = _jobs(options.get("jobs"))
        self.run_id = check_run_id(options.get("run_id"))  # here, so that a task tried again says the same
        self.schema = schema
        self.conditions: list[Condition] = []
        known = {column.name for column in TABLES[self.table].columns}
        unknown = [name for name in schema.names if name not in known]
        if unknown:
            raise UsageError(
                f"table {self.table} has no column {unknown[0]!r}; kwsniff explain {self.table} lists them"
            )

    def partitions(self) -> Sequence[InputPartition]:
        """One, in which the rows come in the order of `kwsniff analyze`."""
        from kwsniff.sources.files import find_captures

        find_captures(self.paths)  # says now what is wrong with them
        return [Whole(tuple(self.paths))]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows, as exactly the Arrow types that Spark wants of this schema."""
        assert isinstance(partition, Whole)  # noqa: S101 - what `partitions` returned
        import pyarrow as pa
        import pyarrow.parquet as pq

        from kwsniff.analysis.analyze import analyze

        wanted = _arrow_schema(self.schema)
        columns = [*dict.fromkeys([*wanted.names, *(each.column for each in self.conditions)])]
        with temporary_folder() as folder:
            # Through a file: memory stays bounded, and topics named late have their names.
            paths = analyze(
                partition.names,
                output=folder,
                tables=[self.table],
                ports=self.ports,
                limits=self.limits,
                tls_keylog=self.keylog,
                run_id=self.run_id,
                layouts=self.layouts or "",
                since=self.since,
                until=self.until,
                jobs=self.jobs,
            ).paths
            with pq.ParquetFile(paths[self.table]) as file:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                    for each in self.conditions:
                        batch = batch.filter(each.rows(batch))  # noqa: PLW2901
                    if batch.num_rows:
                        table = pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)
                        yield from table.combine_chunks().to_batches()


class FilteringReader(CaptureReader):
    """The same, for sessions that hand filters to Python sources."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterator[Filter]":
        """Takes what it can decide row by row, and gives back the rest."""
        known = {column.name: column for column in TABLES[self.table].columns}
        for each in filters:
            taken = condition(each, known)
            if taken is None:
                yield each
            else:
                self.conditions.append(taken)


def check_options(options: Mapping[str, str]) -> None:
    """Raises UsageError for an option that there is not: a typing error must not give other rows."""
    for name in options:
        if name.lower() not in (*OPTIONS, *_SPARKS_OWN):
            near = get_close_matches(name.lower(), OPTIONS, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(OPTIONS)}"
            raise UsageError(f"unknown option {name!r} of the data source{meant}")


def _options_of_table(options: Mapping[str, str]) -> dict[str, str]:
    """What `create table ... options (...)` said."""
    given = {
        name.lower().removeprefix(_OF_TABLE): value
        for name, value in options.items()
        if name.lower().startswith(_OF_TABLE)
    }
    return {**given, **({"path": options["path"]} if "path" in options else {})}


def _arrow_schema(schema: StructType) -> "pa.Schema":
    """As Spark wants the rows, times in UTC; Spark 4.0 and 4.1 have them so without a word."""
    from pyspark.sql.pandas.types import to_arrow_schema

    said: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **said)


def _carrying(schema: "pa.Schema", options: Mapping[str, str]) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    first, *others = from_arrow_schema(schema).fields
    return StructType(
        [StructField(first.name, first.dataType, metadata={_CARRIED: json.dumps(options)}), *others]
    )


def _pack_options(schema: StructType) -> dict[str, str]:
    """The options of the table that this is the schema of."""
    for field in schema.fields:
        if _CARRIED in field.metadata:
            return dict(json.loads(field.metadata[_CARRIED]))
    return {}


def table_of(options: Mapping[str, str]) -> str:
    """The table that is asked for. Raises UsageError for one that does not exist."""
    table = options.get("table", "api_calls")
    if table not in TABLES:
        raise UsageError(f"unknown table {table!r}; {suggest(table, TABLES)}")
    return table


def paths_of(options: Mapping[str, str]) -> list[str]:
    """The paths given to `load`, patterns replaced by what they match, sorted. Raises UsageError."""
    given = json.loads(options["paths"]) if "paths" in options else [options.get("path")]
    if not given or None in given:
        raise UsageError('no capture was named: spark.read.format("kafka_capture").load("capture.pcap")')
    found: list[str] = []
    for path in given:
        text = local_path(str(path))
        matches = [text] if Path(text).exists() or not set(text) & set("*?[") else sorted(_matching(text))
        if not matches:
            raise UsageError(f"{text}: no file matches this pattern")
        found += matches
    return found


def _matching(pattern: str) -> Iterator[str]:
    path = Path(pattern)
    root = Path(path.anchor) if path.is_absolute() else Path()
    return (str(found) for found in root.glob(str(path.relative_to(root) if path.anchor else path)))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _jobs(text: str | None) -> int | None:
    if text is not None and not (text.isdecimal() and 0 < int(text) <= MOST):
        raise UsageError(f"option jobs {text!r}: give a number from 1 to {MOST}")
    return None if text is None else int(text)


def _limit(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not value.strip().isdecimal():
        raise UsageError(
            f"option limit {text!r}: give a name and a whole number, for example connections=1000"
        )
    return name.strip(), value
