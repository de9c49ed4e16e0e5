"""Work spread over Spark's tasks: one task per item, one small result each, by way of DataFrames only.

Results travel through the driver; rows never do. What a task writes it writes to files of its own attempt and
names them in its result: a task that dies is tried again, and what its dead attempts left is in no result.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kwsniff.errors import KwsniffError, OutputError
from kwsniff.spark.values import dump, load

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = "number bigint, result binary"


def run_tasks(
    spark: "SparkSession", work: Callable[[Item], Result], items: Sequence[Item], *, most: int | None = None
) -> list[Result]:
    """`work` of every item, in order; in `most` tasks, of neighbours, where items are small beside a task.

    Results are what `kwsniff.spark.values` can dump. Raises the KwsniffError of a task, OutputError for what
    else failed.
    """
    if not items:
        return []

    def run(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        schema = pa.schema([("number", pa.int64()), ("result", pa.binary())])
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = dump(_outcome(work, items[number]))
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], schema=schema)

    try:
        rows = (
            spark.range(0, len(items), 1, min(len(items), most or len(items)))
            .mapInArrow(run, _SCHEMA)
            .collect()
        )
    except Exception as error:
        raise OutputError(f"a Spark task failed for good: {_last_line(error)}") from error
    results: list[Any] = [None] * len(items)
    for row in rows:
        results[row["number"]] = load(row["result"])
    for result in results:
        if isinstance(result, KwsniffError):
            raise result
    return results


def _outcome(work: Callable[[Any], Any], item: Any) -> Any:
    """The result; an error that another attempt would meet again is one, too."""
    try:
        return work(item)
    except KwsniffError as error:
        return error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Python's own error stands at the end of its traceback, in front of the JVM's.
    java = next((number for number, line in enumerate(lines) if line.startswith("at ")), len(lines))
    return lines[java - 1] if lines else type(error).__name__
