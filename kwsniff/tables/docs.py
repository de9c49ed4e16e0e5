"""docs/tables.md, made of the schema declarations. `python -m kwsniff.tables.docs > docs/tables.md`"""

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

- Column names are Kafka's own words. `call_id` and `connection_id` join the tables of a run. They are made of
  packet numbers, so those of two runs are alike: where a folder, or a query, has several runs, join on
  `run_id` with them, `using (run_id, call_id)`. It is the same in all rows of a run, another in every run.
- `time` is `timestamp[us, UTC]`. Durations end in `_ns` and keep the precision of the capture.
- `strings` is a list of strings, `integers` one of 64-bit integers; `double` is a 64-bit float.
  There are no unsigned integers and no nanosecond timestamps.
- A null always means what the column says about it. Columns that say nothing are never null.
- Files appear under their names when all of them are complete; a new run replaces them, all or none.

## Reading little of them

Rows are in the order in which calls ended (`groups`, `members` and `transactions`: in which they ended; rows
of `latencies` of which other calls may prove something come up to a second later), in row groups of at most
65,536. Every row group says the least and the greatest value of the columns people
filter by:
times, `call_id`, `connection_id`, `api_key`, `api_name`, `client_id`, `group_id`, `topic`, `partition`,
status, error codes, latencies. So, with any reader that pushes filters down (pyarrow, Spark, DuckDB, Polars):

- A filter on time, `call_id` or a range of them reads the row groups of that time and no others.
- A filter on an API, a client, a group or a topic skips row groups in which it cannot be, and elsewhere reads
  that column first: texts are stored once per row group, with a small number per row.
- `kwsniff pipeline` writes the same rows as folders, `DIR/<table>/date=2026-11-20/*.parquet`: a filter on
  `date` reads the files of that day only. There, rows of different connections may come in another order.
- Files of `kwsniff analyze` are one per table and run, not partitioned into directories. A run over one day's
  captures gives a day's files; readers take many runs as one table:
  `read_parquet('runs/*/api_calls.parquet')`.

## Who writes, and what a reader may see

One kwsniff at a time writes into a folder, be it `analyze`, `live` or `pipeline`: a hidden file there,
`.kwsniff.lock`, is locked meanwhile. A second one says so and ends with status 2. The lock holds between
processes, containers and hosts that share the folder, and ends with its process. Where the file system has no
locks, a file `.kwsniff.writing` stands in for it: after a crash kwsniff asks you to remove it, since nobody
can tell whether its writer still lives.

Runs of `live` gather in a folder. `live` and `pipeline` refuse a folder with tables of another verb.
`analyze` replaces files of its own kind, leaves folders of the others as they are, and says so: who reads the
folder takes its files then.

What is being written lies in a hidden folder, `.kwsniff-<random>/`. When all of it is complete, it takes the
place of the old: all names, or none, also when the run is refused one of them or is killed in between.

- `analyze` gives each file its name in one step, so that a reader finds every file whole, always. The names
  follow one another within a moment: who opens several files just then may get some of the old run and some
  of the new, which their `run_id` tells. If kwsniff is killed in that moment, its journal stays there, and
  the next kwsniff that writes into the folder completes the change first.
- `live` adds files, those of one number together, in the same way; none is replaced.
- `pipeline` exchanges the whole folder in one step, on Linux and a local file system: a reader finds the old
  folder or the new one. Where that cannot be (NFS, a mount point, the working directory, a link, or a folder
  that holds other things, which stay there), tables are moved one by one as above, and a table may be missing
  for the moment between two moves.

A file that is open stays readable, whatever happens to its name.
"""

_AGGREGATES = """\
# Aggregates

`kwsniff pipeline` ([spark.md](spark.md)) also writes what people ask of hours and days of traffic. Everything
in them adds up: sum counts and merge sketches to make hours of minutes, and days of hours.
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
