"""`kwsniff.sql`: SQL over a folder of tables."""

import os

import pyarrow as pa

from kwsniff.analysis.filtered_folder import chosen_folder
from kwsniff.filter.expression import Filter
from kwsniff.filter.parser import parse_filter
from kwsniff.findings.sql import ask, find_question, open_console


def sql(
    folder: str | os.PathLike[str],
    query: str | None = None,
    *,
    question: str | None = None,
    where: str | Filter | None = None,
) -> pa.Table:
    """The rows of a query over a folder of tables of analyze, live or pipeline, as a pyarrow Table.

    `query`: SQL of DuckDB, one query, with a view for each table. `question`: the name of a ready one instead
    (docs/questions.md). `where`: a filter (docs/filters.md); the tables then hold the chosen calls and what
    belongs to them. Raises UsageError.
    """
    if (query is None) == (question is None):
        raise TypeError("give a query or a question")
    asked = find_question(question).query if question is not None else query or ""
    filter_ = parse_filter(where) if isinstance(where, str) else where
    with chosen_folder(os.fspath(folder), filter_) as place, open_console(place) as database:
        rows = ask(database, asked)
        return pa.Table.from_batches(rows.batches, rows.schema)
