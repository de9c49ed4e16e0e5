"""Tables with a history: Delta's log, or Iceberg's metadata, of the files that a run has published.

Delta: each table's folder is a Delta table, partitioned by `date`; deltalake writes its log.
Iceberg: one catalog, in SQLite, beside the tables (`_kwsniff.catalog.db`), written by pyiceberg; its tables
are in the namespace `kwsniff`, and their files have the column `date`: Iceberg takes no values from names.
Both know a file by its name for as long as a version shows it, so that none is removed here.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.parts import NO_DATE, Part
from kwsniff.spark.storage import Place
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import NAMESPACE, open_catalog

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

FORMATS: Final = ("parquet", "delta", "iceberg")
MODES: Final = ("overwrite", "append", "replace-dates")
_DAY: Final = pa.field("date", pa.date32())


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


def date_of(path: str) -> str | None:
    """The day in the name of a file's folder."""
    day = path.split("/")[1].removeprefix("date=")
    return None if day == NO_DATE else day


def place_part(name: str, place: Place, source: str, part: Part) -> Part:
    """Puts a run's file where its table shall show it; of Iceberg's with its day as a column."""
    if name != "iceberg":
        place.copy(source, part.path)
        return part
    import pyarrow.parquet as pq

    day = date_of(part.path)
    value = pa.scalar(None if day is None else date.fromisoformat(day), _DAY.type)
    with place.open_parquet(source) as file, place.open_output(part.path) as target:
        schema = pa.schema([field.remove_metadata() for field in file.schema_arrow]).append(_DAY)
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                days = pa.repeat(value, rows.num_rows)
                writer.write_table(rows.append_column(_DAY, days).cast(schema))
        size = target.tell()
    return Part(part.table, part.path, part.rows, size)


def log_files(name: str, mode: str, place: Place, parts: Sequence[Part], run: str) -> None:
    """Makes these files the newest version of their tables. Raises OutputError."""
    by_table: dict[str, list[Part]] = {}
    for part in parts:
        by_table.setdefault(part.table, []).append(part)
    write: Callable[..., None] = _log_iceberg if name == "iceberg" else _log_delta
    with open_catalog(place.folder) if name == "iceberg" else nullcontext() as catalog:
        for table, files in by_table.items():
            filled = [part for part in files if part.rows]
            dates = sorted({date_of(part.path) for part in filled}, key=str)
            try:
                write(catalog, place, table, filled, mode=mode, dates=dates, run=run)
            except (OutputError, OSError):
                raise
            except Exception as error:  # of libraries, each with classes of its own
                why = " ".join(str(error).split())
                raise OutputError(
                    f"{place.display(table)}: no {name} version of it was written ({why})"
                ) from error


def options_of(place: Place) -> dict[str, str]:
    """What deltalake wants to know of a store."""
    known = dict(place.settings)
    names = {
        "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
        "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
        "fs.s3a.session.token": "AWS_SESSION_TOKEN",
        "fs.s3a.endpoint": "AWS_ENDPOINT_URL",
        "fs.s3a.endpoint.region": "AWS_REGION",
    }
    options = {there: known[here] for here, there in names.items() if known.get(here)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _columns(table: str) -> pa.Schema:
    return arrow_schema({**TABLES, **AGGREGATES}[table]).append(_DAY)


def _log_delta(
    _: Any,
    place: Place,
    table: str,
    parts: Sequence[Part],
    *,
    mode: str,
    dates: Sequence[str | None],
    run: str,
) -> None:
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, CommitProperties

    schema = Schema.from_arrow(_columns(table))
    uri = place.display(table)
    options = options_of(place)
    found = DeltaTable.create(
        uri, schema, mode="ignore", partition_by=["date"], storage_options=options or None
    )
    known = {field.name for field in found.schema().fields}
    new = [field for field in schema.fields if field.name not in known]
    if new:
        found.alter.add_columns(new)
    now = int(time.time() * 1000)
    added: list[Any] = [
        AddAction(
            part.path.partition("/")[2],
            part.size,
            {"date": date_of(part.path)},
            now,
            True,
            json.dumps({"numRecords": part.rows}),
        )
        for part in parts
    ]
    filters = [("date", "in", [day or "" for day in dates])] if mode == "replace-dates" else None
    if mode == "replace-dates" and not dates:
        return
    found.create_write_transaction(
        added,
        "append" if mode == "append" else "overwrite",
        found.schema(),
        ["date"],
        filters,
        commit_properties=CommitProperties(custom_metadata={"kwsniff_run_id": run}),
    )


def _log_iceberg(
    catalog: "SqlCatalog",
    place: Place,
    table: str,
    parts: Sequence[Part],
    *,
    mode: str,
    dates: Sequence[str | None],
    run: str,
) -> None:
    from pyiceberg.expressions import AlwaysTrue

    schema = _columns(table)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    found = _table(catalog, f"{NAMESPACE}.{table}", f"file://{place.display(table)}", schema)
    with found.update_schema() as change:
        change.union_by_name(schema)
    noted = {"kwsniff_run_id": run}
    with warnings.catch_warnings(), found.transaction() as change:
        warnings.filterwarnings("ignore", "Delete operation did not match any records")
        if mode == "overwrite":
            change.delete(AlwaysTrue(), snapshot_properties=noted)
        elif mode == "replace-dates":
            days = ["date is null" if day is None else f"date = '{day}'" for day in dates]
            if days:
                change.delete(" or ".join(days), snapshot_properties=noted)
        if parts:
            files = [f"file://{place.display(part.path)}" for part in parts]
            change.add_files(files, snapshot_properties=noted)


def _table(catalog: "SqlCatalog", name: str, location: str, schema: pa.Schema) -> Any:
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        made = catalog.create_table(name, schema, location=location)
    with made.update_spec() as change:
        change.add_identity("date")
    return made


def keep_parts(manifest: Mapping[str, Any] | None, mode: str, parts: Iterable[Part]) -> list[Part]:
    """The files of the run before that stay beside these."""
    if manifest is None or mode == "overwrite":
        return []
    new = [*parts]
    dates = {(part.table, date_of(part.path)) for part in new if part.rows}
    old = [Part(table, **each) for table, files in manifest.get("files", {}).items() for each in files]
    stays = [part for part in old if mode == "append" or (part.table, date_of(part.path)) not in dates]
    filled = {part.table for part in (*new, *stays) if part.rows}
    return [part for part in stays if part.rows or part.table not in filled]
