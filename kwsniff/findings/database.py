"""A database of DuckDB, in memory; with few threads and addresses where the system bounds these."""

import errno
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from kwsniff.memory import check_addresses, has_address_limit

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_ADDRESSES: Final = 200_000_000
"""Bytes for DuckDB's code and threads, and for what the C library loads for them. Where these are refused
some, the process ends, not the query."""
_DISK_FULL: Final = os.strerror(errno.ENOSPC)


def open_database(*, bare: bool = False) -> "duckdb.DuckDBPyConnection":
    """Raises OSError (ENOMEM) where addresses are bounded and few are left.

    `bare`: DuckDB's compiled module alone: what its package adds around it (relations, expressions) takes
    longer to load than a small capture's rules to be asked.
    """
    check_addresses(_ADDRESSES)
    # DuckDB before 1.4 has no module of that name
    name = "_duckdb" if bare and find_spec("_duckdb") else "duckdb"
    connect: Callable[..., duckdb.DuckDBPyConnection] = import_module(name).connect
    if not has_address_limit():
        return connect()
    try:
        return connect(config={"threads": 1, "async_threads": 0})
    except Exception as error:
        if type(error).__name__ not in ("ProgrammingError", "InvalidInputException"):
            raise
        return connect(config={"threads": 1})  # DuckDB before 2.0 has no threads of the other kind


def hush(database: "duckdb.DuckDBPyConnection") -> None:
    """No progress bar. In a notebook without ipywidgets there is none, and DuckDB rejects this setting."""
    ((shown,),) = database.execute("select current_setting('enable_progress_bar')").fetchall()
    if shown:
        database.execute("set enable_progress_bar = false")


def read_batches(found: Any, rows: int) -> "pa.RecordBatchReader":
    """The rows of a relation, at most `rows` in a batch."""
    # The name before DuckDB 1.5.
    make = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader
    reader: pa.RecordBatchReader = make(rows)
    return reader


def lacks_memory(error: Exception) -> bool:
    """Whether DuckDB says that it may not have the memory that a query takes, or the disk where it puts what
    goes beyond."""
    # Its module may be the bare one, or that of its package.
    kind = type(error).__name__
    return kind == "OutOfMemoryException" or (kind == "IOException" and _DISK_FULL in str(error))
