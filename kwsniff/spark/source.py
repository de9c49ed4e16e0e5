"""The Spark data source `kafka_capture`: captures as DataFrames, one table per read.

Options: see source_options.py, and docs/spark.md. `pushdown` needs spark.sql.python.filterPushdown.enabled,
which kwsniff's own sessions have. A schema given by the user chooses columns, the only way in which Spark
prunes those of Python sources. Reads of the same captures with the same options are one run.

`create table ... using kafka_capture`: Spark keeps such a table's options, but hands them to no reader of a
Python source (4.0 to 4.3); its schema it does hand over. So the schema of a table carries them.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructField, StructType

from kwsniff import __version__
from kwsniff.errors import KwsniffError, UsageError
from kwsniff.layout.catalog import named_layouts
from kwsniff.sources.times import TimeRange
from kwsniff.spark.file_systems import check_uri, chosen_settings, is_uri
from kwsniff.spark.pushdown import Condition, condition
from kwsniff.spark.source_files import Choice, Seen, find_files
from kwsniff.spark.source_options import (
    check_options,
    flag,
    hadoop_settings_in,
    is_created,
    jobs_of,
    limits_of,
    options_of_table,
    paths_of,
    ports_of,
    table_of,
    words,
)
from kwsniff.spark.stored_captures import Stores, opener_of, root_of
from kwsniff.tables.run import check_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

_BATCH_ROWS = 10_000
_READ_BYTES: Final = 8 << 20
"""Of a store, per request."""
_CARRIED: Final = "kafka_capture"


class CaptureSource(DataSource):
    """`spark.read.format("kafka_capture")`."""

    hadoop: ClassVar[Mapping[str, str]] = {}
    """Settings of stores that the session had when the source was registered."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "kafka_capture"

    def schema(self) -> StructType | str:
        """The table's declared schema; of a table that is being created, with its options."""
        with _in_one_line():
            if not is_created(self.options):
                return spark_ddl(TABLES[table_of(check_options(self.options))])
            given = options_of_table(self.options)
            table = TABLES[table_of(check_options(given))]
            paths_of(given)
            return _carrying(arrow_schema(table), given)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns; one that takes filters only on request: Spark may refuse it."""
        # By default Spark fails with a reader that takes filters, whatever the query.
        with _in_one_line():
            options = check_options(_unpack_options(schema)) | check_options(self.options)
            takes_filters = flag(options, "pushdown")
            if takes_filters and not hasattr(datasource, "Filter"):
                raise UsageError(
                    "this Spark passes no filters to Python sources, only 4.1 and later do; omit pushdown"
                )
            settings = {**self.hadoop, **hadoop_settings_in(self.options)}
            return (FilteringReader if takes_filters else CaptureReader)(options, schema, settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Not supported: connections continue from batch to batch, and Spark keeps no state for a source."""
        raise UsageError(
            "kafka_capture does not support readStream; "
            "follow a directory with kwsniff pipeline --stream DIR -o TABLES, and read its tables"
        )


def source_with(settings: Mapping[str, str]) -> type[CaptureSource]:
    """The source with these settings of stores: a class that Spark sends to its planner as it is."""

    class Registered(CaptureSource):
        hadoop: ClassVar[Mapping[str, str]] = dict(settings)

    return Registered


@contextmanager
def _in_one_line() -> Iterator[None]:
    """What is wrong with options or captures is said without a traceback. The process that plans for Spark
    ends with an error, so this hides no errors of others."""
    try:
        yield
    except KwsniffError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


@dataclass
class Whole(InputPartition):
    """All captures, in order, because connections continue from one to the next."""

    names: tuple[str, ...]
    stores: Stores = field(default=(), repr=False)


class CaptureReader(DataSourceReader):
    """Analyzes the captures in one task and hands on the rows of one table.

    One task, since every bucket needs what others know (names of topics, twins, what groups and followers
    did): tasks that do not talk to each other would each have to follow all connections. Inside it several
    analyzers share the connections out.
    """

    def __init__(
        self, options: Mapping[str, str], schema: StructType, settings: Mapping[str, str] | None = None
    ) -> None:
        self.table = table_of(options)
        self.ports, self.limits, self.jobs = ports_of(options), limits_of(options), jobs_of(options)
        self.keylog = words(options.get("tlskeylog")) or None
        self.since, self.until = options.get("since"), options.get("until")
        TimeRange(self.since, self.until)  # says now what is wrong with them
        # Resolved here, in the caller's environment, and passed to tasks.
        self.layouts = named_layouts(options.get("layouts"))
        self.schema = schema
        self.conditions: list[Condition] = []
        known = {column.name for column in TABLES[self.table].columns}
        unknown = [name for name in schema.names if name not in known]
        if unknown:
            raise UsageError(
                f"table {self.table} has no column {unknown[0]!r}; kwsniff explain {self.table} lists them"
            )
        paths = paths_of(options)
        roots = dict.fromkeys(root_of(check_uri(path)) for path in paths if is_uri(path))
        self.stores = tuple((root, chosen_settings(settings or {}, root)) for root in roots)
        found = find_files(paths, Choice.read(options), self.stores)
        self.names = [each.name for each in found]
        # Here, so that a task tried again says the same.
        self.run_id = check_run_id(options.get("runid") or self._run_of(found))

    def _run_of(self, found: Sequence[Seen]) -> str:
        """The same for all tables of the same captures: calls have the same ids in them."""
        secrets = [(name, *_state(Path(name))) for name in self.keylog or ()]
        inside = [
            _state(path) for each in found if each.is_folder for path in sorted(Path(each.name).iterdir())
        ]
        files = sorted((each.name, each.size, each.modified) for each in found)
        said = [__version__, files, inside, self.ports, sorted(self.limits.items()), secrets]
        facts = repr([*said, self.since, self.until, self.layouts]).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(facts, digest_size=16).hexdigest()

    def partitions(self) -> Sequence[InputPartition]:
        """One, in which the rows come in the order of `kwsniff analyze`."""
        from kwsniff.sources.files import find_captures

        with _in_one_line():
            if local := [name for name in self.names if not is_uri(name)]:
                find_captures(local, required=not self.stores)  # says now what is wrong with them
        return [Whole(tuple(self.names), self.stores)]

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
                [Stored(name, partition.stores) if is_uri(name) else name for name in partition.names],
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


class Stored:
    """A capture in a store as a file object, which is opened once it is read: analyze copies it, since
    captures are read more than once."""

    def __init__(self, name: str, stores: Stores) -> None:
        self.name = name
        self._stores = stores
        self._file: Any = None

    def read(self, size: int = -1, /) -> bytes:
        """Some bytes; empty at the end, which closes it. Raises CaptureError, OSError."""
        if self._file is None:
            opener = opener_of(self.name, self._stores)
            assert opener is not None  # noqa: S101 - a URI has one
            self._file = io.BufferedReader(opener(self.name).raw, _READ_BYTES)
        piece = bytes(self._file.read(size))
        if not piece:
            self._file.close()
        return piece


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


def _unpack_options(schema: StructType) -> dict[str, str]:
    """The options of the table that this is the schema of."""
    for each in schema.fields:
        if _CARRIED in each.metadata:
            return dict(json.loads(each.metadata[_CARRIED]))
    return {}


def _state(path: Path) -> tuple[str, int, int]:
    """What changes when a file does."""
    try:
        state = path.stat()
    except OSError:  # the reader of the file names it
        return str(path), 0, 0
    return str(path), state.st_size, state.st_mtime_ns
