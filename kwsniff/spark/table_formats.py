"""Tables with a history: Delta's log, or Iceberg's metadata, of the files that a run has published.

delta.py and iceberg.py commit to each. Both know a file by its name for as long as a version shows it, so
that none is removed here.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from typing import Any, Final

import pyarrow as pa

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.dated_parts import DAY, date_of
from kwsniff.spark.delta import append_version
from kwsniff.spark.iceberg import append_snapshot
from kwsniff.spark.manifest import parts_of
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.stored_files import open_catalog

FORMATS: Final = ("parquet", "delta", "iceberg")
MODES: Final = ("overwrite", "append", "replace-dates")


def check_format(name: str, mode: str, *, is_uri: bool) -> None:
    """Raises UsageError for what there is not, or what cannot be done: before anything is read for long."""
    if name not in FORMATS:
        raise UsageError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}; there are {', '.join(MODES)}")
    if name == "iceberg" and is_uri:
        raise UsageError("--format iceberg has its catalog in a folder; for a URI choose --format delta")
    library = {"delta": "deltalake", "iceberg": "pyiceberg"}.get(name)
    if library is not None:
        try:
            __import__(library)
        except ImportError as error:
            raise UsageError(
                f"--format {name} needs the library {library}: pip install '.[{name}]' in a clone of the "
                "repository"
            ) from error


def place_part(name: str, place: Place, source: str, part: Part) -> Part:
    """Puts a run's file where its table shall show it; of Iceberg's with its day as a column."""
    if name != "iceberg":
        place.copy(source, part.path)
        return part
    import pyarrow.parquet as pq

    day = date_of(part.path)
    value = pa.scalar(None if day is None else date.fromisoformat(day), DAY.type)
    with place.open_parquet(source) as file, place.open_output(part.path) as target:
        schema = pa.schema([field.remove_metadata() for field in file.schema_arrow]).append(DAY)
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                days = pa.repeat(value, rows.num_rows)
                writer.write_table(rows.append_column(DAY, days).cast(schema))
        size = target.tell()
    return Part(part.table, part.path, part.rows, size)


def log_files(
    name: str, mode: str, place: Place, parts: Sequence[Part], run: str, *, removes: Iterable[str] = ()
) -> None:
    """Makes these files the newest version of their tables, without `removes`; one that has them from this
    run stays as it is. Raises OutputError."""
    by_table: dict[str, list[Part]] = {path.partition("/")[0]: [] for path in removes}
    for part in parts:
        by_table.setdefault(part.table, []).append(part)
    write: Callable[..., None] = append_snapshot if name == "iceberg" else append_version
    with open_catalog(place.folder) if name == "iceberg" else nullcontext() as catalog:
        for table, files in by_table.items():
            filled = [part for part in files if part.rows]
            gone = [path for path in removes if path.startswith(f"{table}/")]
            dates = sorted({date_of(path) for path in gone or [part.path for part in filled]}, key=str)
            try:
                write(catalog, place, table, filled, mode=mode, dates=dates, run=run, removes=gone)
            except (OutputError, OSError):
                raise
            except Exception as error:  # of libraries, each with classes of its own
                why = " ".join(str(error).split())
                raise OutputError(
                    f"{place.display(table)}: no {name} version of it was written ({why})"
                ) from error


def keep_parts(
    manifest: Mapping[str, Any] | None, mode: str, parts: Iterable[Part], removes: Container[str] = ()
) -> list[Part]:
    """The files of the run before that stay beside these."""
    if manifest is None or mode == "overwrite":
        return []
    new = [*parts]
    dates = {(part.table, date_of(part.path)) for part in new if part.rows}
    old = [part for part in parts_of(manifest) if part.path not in removes]
    stays = [part for part in old if mode == "append" or (part.table, date_of(part.path)) not in dates]
    filled = {part.table for part in (*new, *stays) if part.rows}
    return [part for part in stays if part.rows or part.table not in filled]
