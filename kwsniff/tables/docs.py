"""docs/tables.md and a page for each table, made of the declarations: `python -m kwsniff.tables.docs docs`"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.enums import WORDS
from kwsniff.tables.schema import TABLES

EXPLAINED: Final = ("status", "reason", "wait", "capture_point", "anomaly", "tcp_event", "icmp_error")
"""Closed lists whose words docs/anomalies.md explains, with what to do; others are on the page of a table."""

_MADE: Final = "<!-- Made by kwsniff.tables.docs -->\n"

_HEAD: Final = """\
# Tables

{made}
`kwsniff analyze CAPTURE... -o DIR` writes one parquet file per table, `DIR/<table>.parquet`; in Python
`kwsniff.analyze(...)` has them as attributes. `live` and `pipeline` write folders of files with the same
columns and types ([how to read them](python.md)).

- Column names are Kafka's own terms.
- `call_id` and `connection_id` join the tables of one run; across runs use `using (run_id, call_id)`.
- Times are packet times, rounded down to the microsecond. Durations end in `_ns` and keep the precision of
  the capture. Frames are packets, counted as Wireshark does: from 1 in each file.
- A type with `?` may be null, which means "not known": the column or the top of its page has the reason.
- `kwsniff explain COLUMN` also prints what a column is computed from.

| type | Arrow | Spark |
|---|---|---|
| `bool` | bool | BOOLEAN |
| `int16`, `int32`, `int64` | same | SMALLINT, INT, BIGINT |
| `double` | float64 | DOUBLE |
| `string`, `binary` | same | STRING, BINARY |
| `strings`, `integers` | list of string, list of int64 | ARRAY&lt;STRING&gt;, ARRAY&lt;BIGINT&gt; |
| `time` | timestamp[us, UTC] | TIMESTAMP |

## List of tables

{tables}
## Aggregates

`kwsniff pipeline` ([spark.md](spark.md)) also writes tables per minute, hour and day. All their columns add
up: sum counts and merge sketches to make hours of minutes, and days of hours.

{aggregates}
## Common columns

Several tables have these columns; their pages list only the names.

{common}
## Filters that skip data

Rows are in the order in which calls ended, in row groups of at most 65,536. `kwsniff analyze --sort` orders
each table by its first time. Readers that push filters down
(pyarrow, Spark, DuckDB, Polars) skip row groups by times, `call_id`, `connection_id`, `api_key`, `api_name`,
`client_id`, `group_id`, `topic`, `partition`, status, error codes and latencies.

`kwsniff pipeline` writes `DIR/<table>/date=2026-11-20/*.parquet`: a filter on `date` reads the files of
that day only. There, rows of different connections may come in another order.

## Writers and readers

One kwsniff at a time writes into a folder. It locks the hidden file `.kwsniff.lock`, across processes,
containers and hosts that share the folder; a second kwsniff ends with status 2. The lock ends with its
process. Where the file system has no locks, a file `.kwsniff.writing` replaces it: remove it after a crash.

A run writes into a hidden folder, `.kwsniff-<random>/`. When all files are complete, they replace the old
ones: all or none. If kwsniff is killed in between, the next kwsniff that writes into the folder completes the
change. An open file stays readable.

- `analyze` replaces file by file. A reader that opens several in that moment may get some of the old run;
  their `run_id` shows it. `analyze` keeps folders of other verbs and says so.
- `live` adds files and replaces none. `live` and `pipeline` refuse a folder with tables of another verb.
- `pipeline` exchanges the whole folder in one step, on Linux and a local file system. Elsewhere (NFS, a
  mount point, the working directory, a link, a folder with other files) it moves tables one by one.
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
            common="".join(f"{_line(column, '')}\n" for column in common.values()),
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


def _table(table: TableSchema, common: dict[_Identity, Column]) -> str:
    own = _pair([column for column in table.columns if _identity(column) not in common])
    shared = [column for column in table.columns if _identity(column) in common]
    usual = _usual_null(own)
    lines = [f"# {table.name}", "", _MADE, f"One row is {table.row}. {table.doc}", ""]
    if usual:
        lines += [f"Null, where a column has no other reason: {usual}.", ""]
    lines += [*(_line(column, table.name, usual) for column in own), ""]
    names = ", ".join(f"`{column.name}`{_null(column, common[_identity(column)])}" for column in shared)
    lines += [f"[Common](../tables.md#common-columns): {names}.", ""]
    for name in dict.fromkeys(column.enum for column in table.columns if column.enum):
        if _home(name) == table.name:
            lines += [f"## {name}", "", *(f"- `{word}`: {text}" for word, text in WORDS[name].items()), ""]
    return "\n".join(lines)


def _usual_null(columns: Iterable[Column]) -> str:
    """What null means in most columns, if it means the same in several."""
    reasons = Counter(column.null for column in columns if column.null)
    usual, times = max(reasons.items(), key=lambda each: each[1], default=("", 0))
    return usual if times > 2 else ""


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
    """One entry for a column of the client and the same column of the broker after it."""
    entries: list[Column] = []
    for column in columns:
        other = entries[-1] if entries else None
        if other and _swap(other) == replace(column, derived_from=None, statistics=False):
            doc = re.sub(r"\bbroker\b", "other side", other.doc)
            doc = re.sub(r"\bclient('s)?", r"client\1 (broker\1)", doc, count=1)
            entries[-1] = replace(other, name=f"{other.name}`, `{column.name}", doc=doc)
        else:
            entries.append(column)
    return entries


def _swap(column: Column) -> Column:
    """The same of the other side."""
    texts: dict[str, Any] = {field: getattr(column, field) for field in ("name", "doc", "source", "null")}
    swapped: dict[str, Any] = {
        field: text and re.sub(r"client|broker", _other_side, text) for field, text in texts.items()
    }
    return replace(column, **swapped, derived_from=None, statistics=False)


def _other_side(side: re.Match[str]) -> str:
    return "broker" if side[0] == "client" else "client"


def _null(column: Column, usual: Column) -> str:
    """What null means where it means something else than in most tables."""
    if column.null == usual.null:
        return ""
    return f" (null: {column.null})" if column.null else " (never null)"


_UNITS: Final = {"nanoseconds": "_ns", "milliseconds": "_ms", "bytes": "bytes"}
"""Units that the end of a column's name shows."""


def _line(column: Column, page: str, usual: str = "") -> str:
    """One column of a list; `usual` is the reason of a null that the page has at its top."""
    kind = f"{column.type}?" if column.null else column.type
    if column.unit and not column.name.endswith(_UNITS.get(column.unit, column.unit)):
        kind += f", {column.unit}"
    if column.enum:
        kind += f", [{column.enum}]({_link(column.enum, page)})"
    reason = f" Null: {column.null}." if column.null and column.null != usual else ""
    return f"- `{column.name}` ({kind}): {column.doc}{reason}"


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
