"""``kwsniff analyze``: convert captures to parquet tables, show a summary on the screen."""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from kwsniff.cli.help_text import group_of
from kwsniff.cli.inputs import add_captures, refuse_tables
from kwsniff.cli.options.filters import add_filters, chosen_filter, refuse_pipes
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.places import add_place_option, parse_places, with_placed
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.options.times import add_time_options, since_and_until, zone_of
from kwsniff.cli.progress import progress_bar
from kwsniff.cli.standard_streams import say_left, say_read
from kwsniff.errors import UsageError
from kwsniff.texts import add_version, json_text

_EXAMPLES = """examples:
  kwsniff analyze capture.pcap                     a summary of the capture
  kwsniff analyze capture.pcap.zst -o tables/      the same, and tables/api_calls.parquet,
  latencies.parquet, ...
  kwsniff analyze rotated/ --json > summary.json   a directory of captures, read as one
  kwsniff analyze day.pcap --since 22:06 --until 22:10   a time range
  kwsniff analyze tls.pcap --tls-keylog keys.log   decrypt TLS
  kwsniff analyze day.pcap --client shop --error any -o shop/   tables of the calls that match
  tcpdump -w - port 9092 | kwsniff analyze -       from standard input, until it ends

kwsniff explain TABLE describes a table. pandas.read_parquet, spark.read.parquet and DuckDB read them
directly.
"""

DONE, NOTHING_FOUND = 0, 1


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "analyze",
        help="convert captures to parquet tables, show a summary",
        description="Read captures, pair requests with responses and decode both. Write tables and show a "
        "summary.",
        epilog=_EXAMPLES,
    )
    add_captures(parser, nargs="*")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="directory for one parquet file per table; created if missing"
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="write only these tables, may be repeated; the summary is shorter too",
    )
    parser.add_argument(
        "--sort", action="store_true", help="order the rows of each table by time, not by the end of calls"
    )
    add_place_option(parser)
    add_port_option(parser)
    add_keylog_option(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, times in nanoseconds")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="rows per list (default: 10)")
    _add_jobs_option(parser)
    group_of(parser, "advanced").add_argument(
        "--no-progress", action="store_true", help="no progress bar on standard error"
    )
    add_time_options(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    add_filters(parser)
    parser.set_defaults(run=run)


def _add_jobs_option(parser: argparse.ArgumentParser) -> None:
    group_of(parser, "advanced").add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="number of parallel analyzers, which share the connections; the result is the same (default: "
        "automatic)",
    )


def run(args: argparse.Namespace) -> int:
    """Exit status 0, or 1 if nothing matches or could be read. Raises KwsniffError."""
    places = parse_places(args.place)
    named = with_placed(args.captures, places, verb="analyze", argument="CAPTURE")
    _check_options(args)

    from kwsniff.analysis.analyze import analyze
    from kwsniff.sources.paths import local_path
    from kwsniff.tables.stored_files import files_of_tables
    from kwsniff.temporary import temporary_folder

    refuse_tables(named)
    _reuse_memory()
    where = chosen_filter(args)
    if where is not None:
        refuse_pipes(named)
    since, until = since_and_until(args)
    args.output = args.output and local_path(args.output)
    before = files_of_tables(Path(args.output)) if args.output is not None else {}
    with progress_bar(shown=not args.no_progress and sys.stderr.isatty()) as progress, ExitStack() as stack:
        # Tables that were not requested go to disk as well: captures may be larger than memory.
        spare = stack.enter_context(temporary_folder()) if args.output is None else None
        summary = analyze(
            args.captures,
            output=args.output or spare,
            tables=[name.strip() for text in args.table for name in text.split(",")] or None,
            ports=parse_ports(args.port),
            limits=parse_limits(args.limit),
            progress=progress,
            tls_keylog=args.tls_keylog,
            since=since,
            until=until,
            where=where,
            jobs=args.jobs,
            places=places,
            sort=args.sort,
        ).summary
    if spare:
        summary["tables"] = {}
    read = say_read(summary)
    if args.output is not None:
        say_left(args.output, before, summary["tables"], files_of_tables(Path(args.output)))
    if args.json:
        print(json_text(add_version(summary), indent=2))
    else:
        from kwsniff.cli.summary.summary import show_summary

        show_summary(summary, sys.stdout, top=args.top, zone=zone_of(args))
    return DONE if read and (where is None or summary["rows"].get("api_calls")) else NOTHING_FOUND


def _reuse_memory() -> None:
    """Gives what threads free to the next batch of rows. Arrow's own allocator asks the system for a third
    more pages than the C library's."""
    from kwsniff.core.columns.allocator import keep_freed_memory

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    keep_freed_memory()


def _check_options(args: argparse.Namespace) -> None:
    if args.top < 1:
        raise UsageError(f"--top must be at least 1, not {args.top}")
    if args.sort and args.output is None:
        raise UsageError("--sort orders files: name a folder for them with -o")
