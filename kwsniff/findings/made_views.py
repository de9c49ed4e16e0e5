"""What a database has been given: DuckDB's own list takes longer to read than most views to be made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import duckdb


class Made:
    """Names of what was made in one database."""

    def __init__(self) -> None:
        self.views: set[str] = set()
        """They are asked again by each query that names them."""
        self.tables: set[str] = set()
        """Their rows are kept, of some behind a view."""
        self.waiting: dict[str, str] = {}
        """Name -> the statement that makes it once it is needed."""
        self.absent: Sequence[str] = ()
        """Of simple_views.ABSENT."""
        self.few = False
        """Whether all tables have few rows (small_tables.py)."""

    def has(self, name: str) -> bool:
        """Whether there is a view or a table of this name."""
        return name in self.views or name in self.tables

    def keep(self, name: str) -> None:
        """Notes that the rows of a view are kept from now on."""
        self.views.discard(name)
        self.tables.add(name)


_MADE: "WeakKeyDictionary[duckdb.DuckDBPyConnection, Made]" = WeakKeyDictionary()


def made_in(database: "duckdb.DuckDBPyConnection") -> Made:
    """What was made in this database."""
    made = _MADE.get(database)
    if made is None:
        made = _MADE[database] = Made()
    return made
