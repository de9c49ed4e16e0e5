"""docs/tables.md, generated from the schema declarations. `python -m kwsniff.tables.docs > docs/tables.md`"""

import sys
from collections.abc import Iterable

from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.schema import TABLES, spark_ddl
from kwsniff.tables.words import WORDS

_HEAD = """\
# Tables

<!-- Made by `python -m kwsniff.tables.docs > docs/tables.md`: edit kwsniff/tables/, not this page. -->

`kwsniff analyze CAPTURE... -o DIR` writes one parquet file per table, `DIR/<table>.parquet`; in Python
`kwsniff.analyze(...)` has them as attributes. Both have the same columns and types.

- Column names follow Kafka's terms. `call_id` and `connection_id` join the tables of a run. They come from
  packet numbers, so two runs have the same ids. If a folder or a query has several runs, also join on
  `run_id`: `using (run_id, call_id)`. All rows of a run have the same `run_id`, and every run has a new one.
- `time` is `timestamp[us, UTC]`. Durations end in `_ns` and keep the precision of the capture.
- `strings` is a list of strings, `integers` one of 64-bit integers; `double` is a 64-bit float.
  There are no unsigned integers and no nanosecond timestamps.
- The column "null" gives the meaning of a null. Columns without an entry are never null.
- Files appear under their names when all of them are complete. A new run replaces all of them or none.

## Reading only what a query needs

Rows are in the order in which calls ended (`groups`, `members` and `transactions`: in which they ended; rows
of `latencies` that depend on other calls come up to a second later), in row groups of at most
65,536. Every row group has minimum and maximum statistics of the usual filter columns:
times, `call_id`, `connection_id`, `api_key`, `api_name`, `client_id`, `group_id`, `topic`, `partition`,
status, error codes, latencies. So, with any reader that pushes filters down (pyarrow, Spark, DuckDB, Polars):

- A filter on time or `call_id`, or on a range of them, reads only the row groups of that time.
- A filter on an API, a client, a group or a topic skips row groups without a possible match. In the others it
  reads that column first: each text is stored once per row group, with a small number per row.
- `kwsniff pipeline` writes the same rows as folders, `DIR/<table>/date=2026-11-20/*.parquet`: a filter on
  `date` reads only the files of that day. Rows of different connections may be in another order there.
- `kwsniff analyze` writes one file per table and run, without partition directories. A run over one day's
  captures gives a day's files; readers can combine many runs into one table:
  `read_parquet('runs/*/api_calls.parquet')`.

## Concurrent writers and readers

Only one `analyze`, `live` or `pipeline` at a time writes into a folder: it locks the hidden file
`.kwsniff.lock` there. A second one reports an error and exits with status 2. The lock works between
processes, containers and hosts that share the folder, and ends with its process. On file systems without
locks, a file `.kwsniff.writing` replaces it. After a crash kwsniff asks you to remove that file, because it
cannot know whether the writer still runs.

A folder may have several runs of `live`. `live` and `pipeline` reject a folder with tables of another verb.
`analyze` replaces its own files, leaves folders of the other verbs unchanged, and prints a note: readers of
the folder then use its files.

kwsniff writes into a hidden folder, `.kwsniff-<random>/`. When all files are complete, they replace the old
ones: all names or none, even if a rename fails or the run is killed in between.

- `analyze` renames each file atomically, so a reader always finds complete files. The renames follow each
  other within a moment: a reader that opens several files during it may get some from the old run and some
  from the new one; `run_id` shows which. If kwsniff is killed during the renames, its journal stays, and the
  next kwsniff that writes into the folder completes them first.
- `live` adds files in the same way, all files of one number together; it replaces none.
- `pipeline` exchanges the whole folder atomically on Linux and a local file system: a reader finds the old
  folder or the new one. If that is not possible (NFS, a mount point, the working directory, a link, or a
  folder with other files, which stay), `pipeline` moves tables one by one as above, and a table may be
  missing
  between two moves.

An open file stays readable after it is replaced.
"""

_AGGREGATES = """\
# Aggregates

`kwsniff pipeline` ([spark.md](spark.md)) also writes aggregates for hours and days of traffic. Sum their
counts and merge their sketches to make hours from minutes, and days from hours.
"""


def tables_page() -> str:
    """The whole page, as Markdown."""
    tables, aggregates = TABLES.values(), AGGREGATES.values()
    parts = [_HEAD, _contents(tables), *map(_table, tables)]
    parts += [_AGGREGATES, _contents(aggregates), *map(_table, aggregates), _words()]
    return "\n".join(parts)


def _contents(tables: Iterable[TableSchema]) -> str:
    return "".join(f"- [{table.name}](#{table.name}): {table.row}\n" for table in tables)


def _table(table: TableSchema) -> str:
    lines = [f"## {table.name}", "", f"One row is {table.row}. {table.doc}", ""]
    lines += ["| column | type | meaning | null | from |", "|---|---|---|---|---|"]
    lines += [_row(column) for column in table.columns]
    lines += ["", "Spark schema:", "", "```sql", spark_ddl(table), "```", ""]
    return "\n".join(lines)


def _row(column: Column) -> str:
    kind = f"{column.type}, {column.unit}" if column.unit else column.type
    enum = f" One of [{column.enum}](#{column.enum})." if column.enum else ""
    return f"| `{column.name}` | {kind} | {column.doc}{enum} | {column.null or ''} | {column.source} |"


def _words() -> str:
    lines = ["## Closed lists", ""]
    for name, words in WORDS.items():
        lines += [f"### {name}", "", *(f"- `{word}`: {meaning}" for word, meaning in words.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(tables_page())
