"""Which tables a run makes."""

from collections.abc import Sequence

from kwsniff.analyzers import core_tables
from kwsniff.errors import UsageError
from kwsniff.filter.rows_of_calls import TABLES_OF_CALLS
from kwsniff.tables.schema import TABLES
from kwsniff.texts import suggest
from kwsniff.timelines.timelines import sources_of


def chosen_tables(tables: str | Sequence[str] | None, *, some_calls: bool = False) -> tuple[str, ...]:
    """Names of tables in the order they are declared.

    Raises UsageError for a name that is none, or that is not made of some calls alone.
    """
    if tables is None:
        return tuple(name for name in TABLES if not some_calls or name in TABLES_OF_CALLS)
    tables = (tables,) if isinstance(tables, str) else tables
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise UsageError(f"unknown table {unknown[0]!r}; {suggest(unknown[0], TABLES)}")
    if some_calls and (others := [name for name in tables if name not in TABLES_OF_CALLS]):
        raise UsageError(
            f"{others[0]} is not made of chosen calls: it tells what many calls do together; "
            f"there are {', '.join(TABLES_OF_CALLS)}"
        )
    return tuple(name for name in TABLES if name in tables)


def delivered_tables(chosen: Sequence[str]) -> tuple[str, ...]:
    """The tables that the core must make for these, and for the summary to tell what the capture is."""
    needed = {*chosen, "api_calls", "connections", "anomalies", *sources_of(chosen)}
    return core_tables(needed)
