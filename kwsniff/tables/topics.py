"""Names for topics that rows show by id, because the message that names them came later in the capture."""

from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc


def _name_listed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    chunks = []
    for chunk in table["topics"].chunks:
        coded = chunk.values.dictionary_encode()
        words = pa.array([names.get(word, word) for word in coded.dictionary.to_pylist()], pa.string())
        chunks.append(
            pa.Array.from_buffers(
                chunk.type,
                len(chunk),
                chunk.buffers()[:2],
                chunk.null_count,
                chunk.offset,
                children=[words.take(coded.indices)],
            )
        )
    at = table.column_names.index("topics")
    return table.set_column(at, table.schema.field(at), pa.chunked_array(chunks, table.schema.field(at).type))


def _name_one(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    ids = pa.array(list(names), pa.string())
    found = pc.index_in(table["topic_id"], value_set=ids)
    named = pa.array(list(names.values()), pa.string()).take(found.combine_chunks())
    at = table.column_names.index("topic")
    return table.set_column(at, table.schema.field(at), pc.coalesce(table["topic"], named))


_MENDED: Final = {
    "api_calls": _name_listed,
    "error_codes": _name_one,
    "partitions": _name_one,
    "record_batches": _name_one,
    "transactions": _name_listed,
}

Change = Callable[[pa.Table], pa.Table]


def late_names(names: Mapping[str, str], tables: Container[str]) -> dict[str, Change]:
    """Table name -> what gives its rows (plain types) the names, for those of `tables` that show topics.

    `names`: topic id (22 characters) -> topic; without names there is nothing to do.
    """
    if not names:
        return {}
    return {table: partial(mend, names=names) for table, mend in _MENDED.items() if table in tables}
