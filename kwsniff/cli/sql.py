"""``kwsniff sql``: query a folder of tables with SQL, and ready-made questions."""

import argparse
import base64
import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kwsniff.cli.options.filters import add_where, chosen_filter
from kwsniff.cli.options.times import add_zone_option, zone_of
from kwsniff.cli.outputs import add_force_option, refuse_loss, refuse_table
from kwsniff.cli.standard_streams import print_message
from kwsniff.errors import UsageError
from kwsniff.texts import JSON_VERSION, clean, json_text
from kwsniff.zones import UTC_ZONE, Zone

if TYPE_CHECKING:
    from kwsniff.findings.sql import Rows

_EXAMPLES = """examples:
  kwsniff sql out                                        lists tables and ready-made questions
  kwsniff sql out --question slow_producers              a ready-made question
  kwsniff sql out "select api_name, count(*) from api_calls group by all"
  kwsniff sql out "from error_codes" -o errors.csv       or .json, .jsonl, .parquet: all rows
  kwsniff sql out --where "latency > 1s and topic = orders"    these calls; or a query over them alone
  kwsniff sql out - < query.sql                          the SQL from standard input

kwsniff explain TABLE describes a table. A query can read the tables and no other file, and cannot change
them.

Ctrl-C ends a query. Exit status: 0 done, 2 error, 130 Ctrl-C
"""

_FORMATS = ("table", "csv", "json", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_MOST_ROWS = 1000
_PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (float, lambda value: value if math.isfinite(value) else None),
    (datetime | date | time, lambda value: value.isoformat()),
    (timedelta, timedelta.total_seconds),
    (bytes, lambda value: base64.b64encode(value).decode("ascii")),
    (Decimal, lambda value: int(value) if value == value.to_integral_value() else float(value)),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "sql",
        help="query a folder of tables with SQL",
        description="Query a folder of tables from analyze, live or pipeline in DuckDB's SQL.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder of tables; --list needs none")
    parser.add_argument(
        "query", nargs="?", metavar="QUERY", help="a query, or - to read it from standard input"
    )
    parser.add_argument("--list", action="store_true", help="list tables and ready-made questions")
    parser.add_argument("--question", metavar="NAME", help="a ready-made question")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        default=None,
        help="table (default), csv, json, jsonl (one row per line), or parquet with -o",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="output file; its ending (.csv, .json, .jsonl, .ndjson, .parquet) selects the format unless "
        "--format is given",
    )
    add_force_option(parser)
    add_zone_option(parser)
    add_where(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 0. Raises UsageError for invalid SQL."""
    query, where = _query(args), chosen_filter(args)
    form = _format(args)
    if args.folder is None:
        return _list_without_folder(args)
    from kwsniff.analysis.filtered_folder import chosen_folder
    from kwsniff.findings.sql import ask, named_when_whole, open_console, read, write_parquet

    if args.output is not None:
        from kwsniff.tables.stored_files import files_of_tables

        endings = [ending for ending, each in _ENDINGS.items() if each == form] or [".txt"]
        refuse_table(
            args.output, (path for paths in files_of_tables(Path(args.folder)).values() for path in paths)
        )
        refuse_loss(args.output, endings, force=args.force)
    with chosen_folder(args.folder, where) as folder, open_console(folder) as database:
        if query is None:
            views = ask(database, "select view_name from duckdb_views() where not internal order by 1")
            _list([str(name) for batch in read(views) for (name,) in batch])
            return 0
        rows = ask(database, query)
        if args.output is None:
            _write(rows, form, sys.stdout, zone_of(args))
            return 0
        with named_when_whole(Path(args.output)) as hidden:
            if form == "parquet":
                write_parquet(rows, hidden)
            else:
                with hidden.open("x", encoding="utf-8", newline="") as out:
                    _write(rows, form, out, zone_of(args))
    return 0


def _list_without_folder(args: argparse.Namespace) -> int:
    from kwsniff.tables.schema import TABLES

    if not args.list:
        raise UsageError("give DIR, a folder of tables; see kwsniff sql --help")
    _list(sorted(TABLES))
    return 0


def _query(args: argparse.Namespace) -> str | None:
    """The SQL to run; None for the list. Raises UsageError for more than one of them."""
    if sum((args.query is not None, args.list, args.question is not None)) > 1:
        raise UsageError("give only one of QUERY, --question and --list")
    if args.question is not None:
        from kwsniff.findings.sql import find_question

        return find_question(args.question).query
    if args.query == "-":
        return sys.stdin.read()
    if args.query is None and args.where is not None and not args.list:
        return "from api_calls"
    query: str | None = args.query
    return query


def _format(args: argparse.Namespace) -> str:
    if args.format is not None:
        if args.format == "parquet" and args.output is None:
            raise UsageError("--format parquet needs -o FILE")
        return str(args.format)
    if args.output is None:
        return "table"
    form = _ENDINGS.get(Path(args.output).suffix.lower())
    if form is None:
        known = ", ".join(_ENDINGS)
        raise UsageError(f"-o {args.output}: unknown file ending; use {known}, or give --format")
    return form


def _list(tables: Sequence[str]) -> None:
    from kwsniff.findings.sql import load_questions

    print("Tables, which kwsniff explain NAME describes")
    print("\n".join(f"  {clean(name)}" for name in tables))
    print("\nQuestions, for --question")
    questions = load_questions().values()
    widest = max(len(each.name) for each in questions)
    print("\n".join(f"  {each.name.ljust(widest)}  {each.asks}" for each in questions))


def _write(answer: "Rows", form: str, out: TextIO, zone: Zone = UTC_ZONE) -> None:
    from kwsniff.findings.sql import read

    names = answer.schema.names
    rows = read(answer)
    if form == "csv":
        # Programs get the values unchanged; for a terminal, control characters are replaced.
        text = clean if out.isatty() else str
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(text, names))
        for batch in rows:
            writer.writerows([text(_cell(value)) for value in row] for row in batch)
    elif form == "json":
        _write_json(names, rows, out)
    elif form == "jsonl":
        for batch in rows:
            for row in batch:
                values = {name: _plain(value) for name, value in zip(names, row, strict=True)}
                out.write(f"{json_text(values)}\n")
    else:
        _write_table(names, (row for batch in rows for row in batch), out, zone)


def _write_json(names: Sequence[str], rows: Iterable[list[list[Any]]], out: TextIO) -> None:
    """A JSON object whose rows are written as they arrive."""
    out.write(f'{{"version": {JSON_VERSION}, "rows": [')
    begin = "\n"
    for batch in rows:
        for row in batch:
            values = {name: _plain(value) for name, value in zip(names, row, strict=True)}
            out.write(f"{begin}{json_text(values)}")
            begin = ",\n"
    out.write("\n]}\n")


def _write_table(names: Sequence[str], rows: Iterator[list[Any]], out: TextIO, zone: Zone) -> None:
    shown: list[list[Any]] = []
    for row in rows:
        if len(shown) == _MOST_ROWS:
            print_message(f"note: shows the first {_MOST_ROWS:,} rows; use --format csv or json for all")
            break
        shown.append(row)
    cells = [list(map(clean, names)), *([clean(_show(value, zone)) for value in row] for row in shown)]
    numbers = [all(_is_number(row[at]) for row in shown) for at in range(len(names))]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    for row in cells:
        sides = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, numbers, strict=True)
        )
        out.write("  ".join(sides).rstrip() + "\n")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _show(value: Any, zone: Zone) -> str:
    """A value for display: times with a zone are shown in the zone of --tz."""
    is_time = isinstance(value, datetime) and value.tzinfo is not None
    return zone.moment(value, 6) if is_time else _cell(value)


def _cell(value: Any) -> str:
    """A value as text; empty for null."""
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json_text(value)
    return str(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, durations in seconds, bytes in base64."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    make = next((make for kind, make in _PLAIN if isinstance(value, kind)), None)
    return value if make is None else make(value)
