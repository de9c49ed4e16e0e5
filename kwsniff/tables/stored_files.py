"""The parquet files that hold the rows of each table in a folder, in whichever way a verb lays them out.

    DIR/TABLE.parquet                       analyze
    DIR/TABLE/**/*.parquet                  live: all of them
    DIR/TABLE/date=.../*.parquet            pipeline: those that DIR/_kwsniff.json names
    DIR/TABLE/_delta_log                    Delta: those of the newest version in the log
    DIR/TABLE/metadata, DIR/_kwsniff.catalog.db    Iceberg: those of the newest snapshot

DIR/_kwsniff.intent.json is there while a run appends to several Delta or Iceberg tables: until all of them
have its rows, no table shows them.

A folder keeps files of earlier versions, of deleted rows and of writers that died: no reader counts them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from kwsniff.errors import UsageError
from kwsniff.tables.folder import MANIFEST, recover
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

CATALOG: Final = "_kwsniff.catalog.db"
INTENT: Final = "_kwsniff.intent.json"
NAMESPACE: Final = "kwsniff"
DELTA_LOG: Final = "_delta_log"
_ICEBERG: Final = "metadata"
_VECTORS: Final = "deletionVectors"


def files_of_tables(folder: Path) -> dict[str, list[str]]:
    """Name of a table -> its parquet files. Raises UsageError where the log of a table cannot be read."""
    found: dict[str, list[str]] = {}
    if not folder.is_dir():
        return found
    recover(folder)
    published = _read_manifest(folder)
    appended, removed = _read_appended(folder)
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.suffix == ".parquet" and entry.is_file():
            found[entry.stem] = [str(entry)]
        elif entry.is_dir():
            shown = {
                *_files_in(entry, published),
                *(file for file in removed if Path(file).is_relative_to(entry)),
            }
            files = [file for file in shown if Path(file).name not in appended]
            if files or entry.name in TABLES:
                found[entry.name] = sorted(files)
    return found


def _files_in(table: Path, published: Mapping[str, list[str]]) -> list[str]:
    if (table / DELTA_LOG).is_dir():
        return _files_of_delta(table)
    if (table / _ICEBERG).is_dir() and table.with_name(CATALOG).is_file():
        return _files_of_iceberg(table)
    if table.name in published:
        return published[table.name]
    return [str(file) for file in table.rglob("*.parquet") if _is_shown(file, table)]


def _is_shown(file: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _read_manifest(folder: Path) -> dict[str, list[str]]:
    """What the manifest of the last run names; empty without one."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return {}
    try:
        said: Any = json.loads(manifest.read_bytes())
        found: dict[str, list[str]] = {}
        for each in (said, *(json.loads((folder / name).read_bytes()) for name in said.get("lists", []))):
            for name, files in each.get("files", {}).items():
                found.setdefault(name, []).extend(str(folder / file["path"]) for file in files)
        return found
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise UsageError(
            f"{manifest}: is damaged, and only it says which files count; remove the folder and make it again"
        ) from error


def _read_appended(folder: Path) -> tuple[frozenset[str], list[str]]:
    """Names of the files that a run is about to append, or was when it died: they begin with its id, and
    logs write paths in ways of their own. And the files that some of them replace."""
    try:
        said: Any = json.loads((folder / INTENT).read_bytes())
        if said["mode"] != "append":
            return frozenset(), []
        removed = [str(folder / path) for path in said.get("removes", [])]
        return frozenset(each["path"].rpartition("/")[2] for each in said["parts"]), removed
    except (OSError, ValueError, TypeError, KeyError):
        return frozenset(), []


def _files_of_delta(table: Path) -> list[str]:
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise _needs(table, "Delta", "deltalake") from error
    try:
        opened = DeltaTable(str(table))
        if _VECTORS in (opened.protocol().reader_features or ()):
            raise UsageError(
                f"{table}: its log marks single rows as deleted (deletion vectors), which only Delta's own "
                "readers know; rewrite it in Spark: REORG TABLE ... APPLY (PURGE), then drop that feature"
            )
        # Escaped as in a URI, with or without its scheme.
        return [unquote(uri.removeprefix("file://")) for uri in opened.file_uris()]
    except UsageError:
        raise
    except Exception as error:  # of deltalake, with classes of its own
        raise _unreadable(table, "Delta log", error) from error


def _files_of_iceberg(table: Path) -> list[str]:
    try:
        with open_catalog(table.parent) as catalog:
            found = catalog.load_table(f"{NAMESPACE}.{table.name}")
            tasks = [*found.scan().plan_files()]
    except ImportError as error:
        raise _needs(table, "Iceberg", "pyiceberg") from error
    except Exception as error:  # of pyiceberg and SQLAlchemy, with classes of their own
        raise _unreadable(table, "Iceberg catalog", error) from error
    if any(task.delete_files for task in tasks):
        raise UsageError(
            f"{table}: its metadata marks single rows as deleted (delete files), which only Iceberg's own "
            "readers know; compact it first (rewrite_data_files)"
        )
    # As it was written: pyiceberg escapes nothing.
    return [task.file.file_path.removeprefix("file://") for task in tasks]


@contextmanager
def open_catalog(folder: Path) -> Iterator["SqlCatalog"]:
    """The catalog of a folder's Iceberg tables, for as long as the block lasts. Raises ImportError."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(NAMESPACE, uri=f"sqlite:///{folder / CATALOG}", warehouse=f"file://{folder}")
    try:
        yield catalog
    finally:
        catalog.engine.dispose()  # its connections to the file stay open otherwise


def _needs(table: Path, form: str, library: str) -> UsageError:
    return UsageError(
        f"{table} is {form}: which of its files count is in its log, and reading that needs {library}: "
        f"pip install {library}"
    )


def _unreadable(table: Path, what: str, error: Exception) -> UsageError:
    why = " ".join(str(error).split())
    return UsageError(
        f"{table}: its {what} cannot be read ({why}); if the folder was moved, put it where it was written"
    )
