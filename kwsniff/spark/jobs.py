"""Work spread over Spark's tasks: one task per item, one small result each, by way of DataFrames only.

Items that are not small lie in a file on storage that all share; each task reads its own.

Results travel through the driver; rows never do. What a task writes it writes to files of its own attempt and
names them in its result: a task that dies is tried again, and what its dead attempts left is in no result.
"""

import gc
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from kwsniff.core.columns.allocator import keep_freed_memory
from kwsniff.errors import KwsniffError, OutputError
from kwsniff.spark.parts import check_file
from kwsniff.spark.serialization import dump, load
from kwsniff.spark.storage import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = "number bigint, result binary"
_WORD: Final = 8
_USUAL_CORES: Final = 8


@dataclass(frozen=True, slots=True)
class Items:
    """Items in a file, found by their numbers."""

    place: Place
    path: str
    ends: str
    """A file with the end of each, as native int64."""
    number: int

    @classmethod
    def write(cls, folder: Place, items: Iterable[Any]) -> Self:
        """Raises OSError."""
        name = uuid.uuid4().hex
        path, ends = f"{name}.items", array("q")
        with folder.open_output(path) as file:
            for item in items:
                file.write(dump(item))
                ends.append(file.tell())
        made = cls(folder, path, f"{name}.ends", len(ends))
        with folder.open_output(made.ends) as file:
            file.write(ends.tobytes())
        return made

    def load(self, number: int) -> Any:
        """The item. Raises OutputError where workers do not see what the driver wrote."""
        check_file(self.place, self.path)
        with self.place.open_input(self.ends) as file:
            file.seek(max(number - 1, 0) * _WORD)
            ends = array("q", file.read(2 * _WORD if number else _WORD))
        begin = ends[0] if number else 0
        with self.place.open_input(self.path) as file:
            file.seek(begin)
            return load(bytes(file.read(ends[-1] - begin)))


def run_tasks(
    spark: "SparkSession", work: Callable[[Item], Result], items: Sequence[Item], *, most: int | None = None
) -> list[Result]:
    """`work` of every item, in order; in `most` tasks, of neighbours, where items are small beside a task.

    Results are what `kwsniff.spark.serialization` can dump. Raises the KwsniffError of a task,
    OutputError for what else failed.
    """
    if not items:
        return []

    def run(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        _settle_in()
        schema = pa.schema([("number", pa.int64()), ("result", pa.binary())])
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = dump(_outcome(work, items[number]))
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], schema=schema)

    tasks = spark.range(0, len(items), 1, min(len(items), most or len(items)))
    rows = collect_rows(tasks.mapInArrow(run, _SCHEMA))
    results: list[Any] = [None] * len(items)
    for row in rows:
        results[row["number"]] = load(row["result"])
    for result in results:
        if isinstance(result, KwsniffError):
            raise result
    return results


@cache
def _settle_in() -> None:
    """Once in each process that runs tasks: what Spark's worker has loaded until now, which stays, is not
    walked through again and again; memory that was freed is kept for the next rows."""
    keep_freed_memory()
    gc.collect()
    gc.freeze()


def cores_of(spark: "SparkSession") -> int:
    """Tasks that run at a time."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # sessions over Spark Connect do not tell
        return _USUAL_CORES


def is_here(spark: "SparkSession | None") -> bool:
    """Whether all tasks run on the driver's machine, which has what they read in its memory."""
    try:
        return spark is None or str(spark.sparkContext.master).startswith("local")
    except Exception:  # sessions over Spark Connect do not tell
        return False


def collect_rows(frame: "DataFrame") -> list[Any]:
    """The rows of a DataFrame. Raises OutputError where a task failed too often."""
    try:
        return frame.collect()
    except Exception as error:
        raise OutputError(f"a Spark task failed after all retries: {_last_line(error)}") from error


def _outcome(work: Callable[[Any], Any], item: Any) -> Any:
    """The result; an error that another attempt would meet again is one, too."""
    try:
        return work(item)
    except KwsniffError as error:
        return error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Python's error is at the end of its traceback, before that of the JVM.
    java = next((number for number, line in enumerate(lines) if line.startswith(("at ", "JVM "))), len(lines))
    told = [line for line in lines[:java] if not line.startswith("SQLSTATE")]
    if not told:
        return type(error).__name__
    if told[-1].startswith("ModuleNotFoundError") and "kwsniff" in told[-1]:
        return f"{told[-1]} on the workers: install it there, or send an environment (spark.archives)"
    return told[-1]
