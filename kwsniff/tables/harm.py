"""The column `harm` of calls and connections: null in new rows, filled once findings are known."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Numbers, numbers, texts, whole_numbers
from kwsniff.tables.columns import HARM
from kwsniff.tables.enums import DERIVED_ENUMS
from kwsniff.tables.schema import TABLES

COLUMN: Final = HARM.name
KEYS: Final = {"api_calls": "call_id", "connections": "connection_id"}
"""Table with the column -> the column that numbers its rows."""
NONE: Final = -1
"""The code of a row without harm."""
_NO_ROW: Final = -1
WORDS: Final = {
    name: DERIVED_ENUMS[column.enum]
    for name in KEYS
    for column in TABLES[name].columns
    if column.name == COLUMN and column.enum
}
"""Table -> words of the column, by their codes."""


class Harm(Protocol):
    """What calls and connections of a run suffered."""

    def codes(self, table: str, keys: Numbers) -> Numbers:
        """The code of each row with these numbers, or NONE."""


def find_codes(keys: Numbers, known: Numbers, codes: Numbers) -> Numbers:
    """Of `known` rows, in order, the codes of those with these numbers; NONE for others."""
    found = np.full(len(keys), NONE, np.int8)
    if len(known):
        places = np.searchsorted(known, keys).clip(max=len(known) - 1)
        here = known[places] == keys
        found[here] = codes[places[here]]
    return found


class HeldHarm:
    """Harm in memory, of at most `most` rows of a table."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[str, tuple[Numbers, Numbers]] = {}

    def judge(self, table: str, rows: Numbers, keys: Numbers, codes: Numbers) -> None:
        """Of `rows`, those with harm, and their codes; what was known of these rows before is out of date."""
        earlier, known = self._rows.get(table, (keys[:0], codes[:0]))
        stays = ~np.isin(earlier, rows)
        both = np.concatenate([earlier[stays], keys])
        order = np.argsort(both, kind="stable")[-self._most :]
        self._rows[table] = both[order], np.concatenate([known[stays], codes])[order]

    def codes(self, table: str, keys: Numbers) -> Numbers:
        """The code of each row with these numbers, or NONE."""
        known, codes = self._rows.get(table, (keys[:0], keys[:0]))
        return find_codes(keys, known, codes)

    def is_in(self, table: str, path: Path) -> bool:
        """Whether a parquet file of this table has rows with harm."""
        if table not in self._rows or not len(self._rows[table][0]):
            return False
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(columns=[KEYS[table]], use_threads=False)
            return any(
                (self.codes(table, whole_numbers(each[0], null=_NO_ROW)) != NONE).any() for each in batches
            )


def fill(table: str, harm: Harm) -> Callable[[pa.Table], pa.Table]:
    """Gives rows their harm; what `rewrite` takes (write.py)."""

    def change(rows: pa.Table) -> pa.Table:
        return with_codes(table, rows, harm.codes(table, keys_of(table, rows)))

    return change


def keys_of(table: str, rows: pa.Table) -> Numbers:
    """The numbers of rows."""
    chunks = [whole_numbers(chunk, null=_NO_ROW) for chunk in rows[KEYS[table]].chunks]
    return np.concatenate([np.zeros(0, np.int64), *chunks])


def with_codes(table: str, rows: pa.Table, codes: Numbers) -> pa.Table:
    """These rows with words for codes."""
    indices = numbers(pa.int32(), codes.astype(np.int32), codes != NONE)
    column = pa.DictionaryArray.from_arrays(indices, texts(WORDS[table]), safe=False)
    place = rows.schema.get_field_index(COLUMN)
    return rows.set_column(place, COLUMN, column)
