"""Iceberg's metadata of a run's files: one catalog, in SQLite, beside the tables (`_kwsniff.catalog.db`).

pyiceberg writes it. Tables are in the namespace `kwsniff`; their files have the column `date`: Iceberg takes
no values from names.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwsniff.spark.dated_parts import dated_schema
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.stored_files import NAMESPACE

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

_RUN: Final = "kwsniff_run_id"


def append_snapshot(
    catalog: "SqlCatalog",
    place: Place,
    table: str,
    parts: Sequence[Part],
    *,
    mode: str,
    dates: Sequence[str | None],
    run: str,
    removes: Sequence[str] = (),
) -> None:
    """Commits these files to a table, as its next snapshot, instead of `removes`, unless this run has
    done so before."""
    from pyiceberg.expressions import AlwaysTrue

    schema = dated_schema(table)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    found = _table(catalog, f"{NAMESPACE}.{table}", f"file://{place.display(table)}", schema)
    if any(each.summary and each.summary.get(_RUN) == run for each in found.snapshots()):
        return
    with found.update_schema() as change:
        change.union_by_name(schema)
    noted = {_RUN: run}
    with warnings.catch_warnings(), found.transaction() as change:
        warnings.filterwarnings("ignore", "Delete operation did not match any records")
        if mode == "overwrite":
            change.delete(AlwaysTrue(), snapshot_properties=noted)
        elif mode == "replace-dates":
            days = ["date is null" if day is None else f"date = '{day}'" for day in dates]
            if days:
                change.delete(" or ".join(days), snapshot_properties=noted)
        if removes:
            _remove_files(found, change, {f"file://{place.display(path)}" for path in removes}, noted)
        if parts:
            files = [f"file://{place.display(part.path)}" for part in parts]
            change.add_files(files, snapshot_properties=noted)


def _remove_files(table: Any, change: Any, paths: set[str], noted: dict[str, str]) -> None:
    files = [task.file for task in table.scan().plan_files()]
    with change.update_snapshot(snapshot_properties=noted).overwrite() as snapshot:
        for file in files:
            if file.file_path in paths:
                snapshot.delete_data_file(file)


def _table(catalog: "SqlCatalog", name: str, location: str, schema: pa.Schema) -> Any:
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        made = catalog.create_table(name, schema, location=location)
    with made.update_spec() as change:
        change.add_identity("date")
    return made
