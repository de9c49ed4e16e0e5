"""The column `harm` of calls and connections: null in new rows, filled once findings are known."""

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import Numbers, numbers, texts, whole_numbers
from kwsniff.tables.enums import DERIVED_ENUMS
from kwsniff.tables.schema import TABLES

COLUMN: Final = "harm"
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
    indices = numbers(pa.int8(), codes.astype(np.int8), codes != NONE)
    column = pa.DictionaryArray.from_arrays(indices, texts(WORDS[table]), safe=False)
    place = rows.schema.get_field_index(COLUMN)
    return rows.set_column(place, COLUMN, column)
