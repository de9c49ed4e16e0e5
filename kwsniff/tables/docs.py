"""docs/tables.md and a page for each table, made of the declarations: `python -m kwsniff.tables.docs docs`"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.enums import WORDS
from kwsniff.tables.schema import TABLES

EXPLAINED: Final = ("status", "reason", "wait", "capture_point", "anomaly", "tcp_event", "icmp_error")
"""Closed lists whose words docs/anomalies.md explains, with what to do; others are on the page of a table."""

_MADE: Final = "<!-- Made by `python -m kwsniff.tables.docs docs`: edit kwsniff/tables/, not this page. -->\n"

_HEAD: Final = """\
# Tables

{made}
`kwsniff analyze CAPTURE... -o DIR` writes one parquet file per table, `DIR/<table>.parquet`; in Python
`kwsniff.analyze(...)` has them as attributes. `live` and `pipeline` write folders of files with the same
columns and types ([how to read them](python.md)).

- Column names are Kafka's own terms.
- `call_id` and `connection_id` join the tables of one run. Across several runs join on `run_id` as well:
  `using (run_id, call_id)`.
- Times are packet times, rounded down to the microsecond. Durations end in `_ns` and keep the precision of
  the capture.
- null means "not known", for the reason in the column's `null` cell. A column with an empty cell is never
  null.

| type | Arrow | Spark |
|---|---|---|
| `bool` | bool | BOOLEAN |
| `int16`, `int32`, `int64` | the same | SMALLINT, INT, BIGINT |
| `double` | float64 | DOUBLE |
| `string`, `binary` | the same | STRING, BINARY |
| `strings`, `integers` | list of string, list of int64 | ARRAY&lt;STRING&gt;, ARRAY&lt;BIGINT&gt; |
| `time` | timestamp[us, UTC] | TIMESTAMP |

There are no unsigned integers and no nanosecond timestamps, which Spark does not read well.

## List of tables

{tables}
## Aggregates

`kwsniff pipeline` ([spark.md](spark.md)) also writes tables per minute, hour and day. All their columns add
up: sum counts and merge sketches to make hours of minutes, and days of hours.

{aggregates}
## Common columns

Several tables have these columns. The page of a table lists them by name only.

{common}
## Filters that skip data

Rows are in the order in which calls ended, in row groups of at most 65,536. Every row group has minimum and
maximum of times, `call_id`, `connection_id`, `api_key`, `api_name`, `client_id`, `group_id`, `topic`,
`partition`, status, error codes and latencies. Readers that push filters down (pyarrow, Spark, DuckDB,
Polars) therefore skip row groups outside a time or range of calls, and row groups without the API, client,
group or topic.

`kwsniff pipeline` writes `DIR/<table>/date=2026-11-20/*.parquet`: a filter on `date` reads the files of
that day only. There, rows of different connections may come in another order.

## Writers and readers

One kwsniff at a time writes into a folder. It holds a lock on the hidden file `.kwsniff.lock`; a second
kwsniff ends with status 2. The lock works across processes, containers and hosts that share the folder, and
ends with its process. Where the file system has no locks, a file `.kwsniff.writing` replaces it: after a
crash, remove that file by hand.

A run writes into a hidden folder, `.kwsniff-<random>/`. When all files are complete, they replace the old
ones: all or none, also when kwsniff is killed in between. The next kwsniff that writes into the folder then
completes the change. An open file stays readable.

- `analyze` replaces each file in one step. A reader that opens several files in that moment may get some of
  the old run and some of the new; their `run_id` shows it. `analyze` keeps folders of other verbs and says
  so.
- `live` adds files and replaces none. `live` and `pipeline` refuse a folder with tables of another verb.
- `pipeline` exchanges the whole folder in one step, on Linux and a local file system. Elsewhere (NFS, a
  mount point, the working directory, a link, a folder with other files) it moves tables one by one; a table
  may be missing for a moment.
"""


class _Identity(NamedTuple):
    """What two columns must have in common to be the same column of two tables."""

    name: str
    type: str
    doc: str
    source: str


def tables_pages() -> dict[str, str]:
    """Path below docs/ -> Markdown: the list of tables, and a page per table."""
    tables, aggregates = TABLES.values(), AGGREGATES.values()
    common = _common_columns([*tables, *aggregates])
    pages = {
        "tables.md": _HEAD.format(
            made=_MADE,
            tables=_contents(tables),
            aggregates=_contents(aggregates),
            common="\n".join([*_COLUMNS, *(_row(column, "") for column in common.values())]) + "\n",
        )
    }
    for table in [*tables, *aggregates]:
        pages[f"tables/{table.name}.md"] = _table(table, common)
    return pages


def _identity(column: Column) -> _Identity:
    return _Identity(column.name, column.type, column.doc, column.source)


def _common_columns(tables: Iterable[TableSchema]) -> dict[_Identity, Column]:
    """Columns of several tables, with the meaning of null that most of them have."""
    found: dict[_Identity, list[Column]] = {}
    for table in tables:
        for column in table.columns:
            found.setdefault(_identity(column), []).append(column)
    return {
        identity: Counter(columns).most_common(1)[0][0]
        for identity, columns in found.items()
        if len(columns) > 1
    }


def _contents(tables: Iterable[TableSchema]) -> str:
    lines = [f"| [{table.name}](tables/{table.name}.md) | {table.row} |\n" for table in tables]
    return "".join(["| table | one row is |\n|---|---|\n", *lines])


_COLUMNS: Final = ("| column | type | meaning | null | from |", "|---|---|---|---|---|")


def _table(table: TableSchema, common: dict[_Identity, Column]) -> str:
    own = _pair([column for column in table.columns if _identity(column) not in common])
    usual, times = Counter(column.source for column in own).most_common(1)[0]
    if times > 2:
        own = [replace(column, source="") if column.source == usual else column for column in own]
    shared = [column for column in table.columns if _identity(column) in common]
    lines = [f"# {table.name}", "", _MADE, f"One row is {table.row}. {table.doc}", ""]
    if times > 2:
        lines += [f"From, where the cell is empty: {usual}.", ""]
    lines += [*_COLUMNS, *(_row(column, table.name) for column in own), ""]
    names = ", ".join(f"`{column.name}`{_null(column, common[_identity(column)])}" for column in shared)
    lines += [f"[Common columns](../tables.md#common-columns): {names}.", ""]
    for name in dict.fromkeys(column.enum for column in table.columns if column.enum):
        if _home(name) == table.name:
            lines += [f"## {name}", "", *(f"- `{word}`: {text}" for word, text in WORDS[name].items()), ""]
    return "\n".join(lines)


def _home(enum: str) -> str:
    """The table whose page has a closed list: the first that uses it; empty for those of EXPLAINED."""
    if enum in EXPLAINED:
        return ""
    return next(
        table.name
        for table in [*TABLES.values(), *AGGREGATES.values()]
        if any(column.enum == enum for column in table.columns)
    )


def _pair(columns: list[Column]) -> list[Column]:
    """One row for a column of the client and the same column of the broker after it."""
    rows: list[Column] = []
    for column in columns:
        other = rows[-1] if rows else None
        if other and _swap(other) == replace(column, derived_from=None, statistics=False):
            doc = re.sub(r"\bclient('s)?", r"client\1 (broker\1)", other.doc, count=1)
            rows[-1] = replace(other, name=f"{other.name}`, `{column.name}", doc=doc)
        else:
            rows.append(column)
    return rows


def _swap(column: Column) -> Column:
    """The same of the broker."""
    texts = {field: getattr(column, field) for field in ("name", "doc", "source", "null")}
    swapped = {field: text and text.replace("client", "broker") for field, text in texts.items()}
    return replace(column, **swapped, derived_from=None, statistics=False)


def _null(column: Column, usual: Column) -> str:
    """What null means where it means something else than in most tables."""
    if column.null == usual.null:
        return ""
    return f" (null: {column.null})" if column.null else " (never null)"


def _row(column: Column, page: str) -> str:
    kind = f"{column.type}, {column.unit}" if column.unit else column.type
    words = f" One of [{column.enum}]({_link(column.enum, page)})." if column.enum else ""
    return f"| `{column.name}` | {kind} | {column.doc}{words} | {column.null or ''} | {column.source} |"


def _link(enum: str, table: str) -> str:
    """To a closed list, from the page of a table, or from the list of tables (empty)."""
    home = _home(enum)
    if home == table:
        return f"#{enum}"
    page, folder = (f"{home}.md", "tables/") if home else ("anomalies.md", "")
    up = "../" if table and not home else ""
    return f"{up if table else folder}{page}#{enum}"


def write_pages(folder: Path) -> None:
    """Writes the pages below a folder, docs/ of a clone, and removes those of tables that are gone."""
    pages = tables_pages()
    (folder / "tables").mkdir(exist_ok=True)
    for old in (folder / "tables").glob("*.md"):
        if f"tables/{old.name}" not in pages:
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
