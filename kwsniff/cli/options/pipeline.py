"""The options of `kwsniff pipeline`."""

import argparse

from kwsniff.cli.help_text import group_of
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option
from kwsniff.cli.options.ports import add_port_option
from kwsniff.cli.options.times import add_time_options
from kwsniff.errors import UsageError
from kwsniff.sources.times import parse_moment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, for the verb and for `python -m kwsniff.spark`."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="pcap or pcapng, plain or inside gzip or zstd, or a directory of them; any order",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        required=True,
        help="output folder, with a folder per table; replaced as a whole",
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="write only these tables and aggregates, may be repeated",
    )
    add_port_option(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    _add_sparks_options(parser)
    _add_stream_options(parser)
    _add_forms(parser)


def _add_sparks_options(parser: argparse.ArgumentParser) -> None:
    group = group_of(parser, "Spark")
    group.add_argument("--master", metavar="URL", help="Spark master (default: local[*], this machine)")
    group.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a Spark setting, may be repeated",
    )
    group.add_argument(
        "--buckets",
        type=int,
        metavar="N",
        help="number of tasks that share the connections (default: by the size of the input)",
    )
    parts = "split uncompressed files into parts of N MB (default: 128 to 2048, by the size of the input)"
    group.add_argument("--split-mb", type=int, metavar="N", help=parts)
    group.add_argument(
        "--scratch",
        metavar="DIR",
        help="folder for intermediate files, visible to all workers (default: next to the output)",
    )


def _add_forms(parser: argparse.ArgumentParser) -> None:
    add_time_options(parser)
    add_keylog_option(parser, ", a path visible to the executors")
    parser.add_argument(
        "--delta",
        action="store_true",
        help="also register every table as a Delta table; needs pip install '.[delta]'",
    )
    parser.add_argument(
        "--format",
        default="parquet",
        metavar="NAME",
        help="parquet (default), or a table format: delta, iceberg",
    )
    parser.add_argument(
        "--mode",
        default="overwrite",
        metavar="NAME",
        help="overwrite (default), append, or replace-dates: replaces the days for which this run has rows",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="with --mode append: also add captures whose rows are already there",
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="with --mode append: continue where the last run ended; its state, a folder or URI",
    )
    parser.add_argument(
        "--keep-old",
        metavar="DURATION",
        type=_parse_duration,
        default=0,
        help="keep replaced files for those who read them, for example 1h (default: remove them)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_stream_options(parser: argparse.ArgumentParser) -> None:
    group = group_of(parser, "following a directory")
    group.add_argument(
        "--stream",
        metavar="DIR",
        help="follow a directory into which tcpdump rotates files, instead of INPUT",
    )
    group.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --stream: files of one recorder, by name (broker1*) or folder (*/); may be repeated",
    )
    group.add_argument(
        "--once", action="store_true", help="with --stream: read the existing files, then stop"
    )
    group.add_argument(
        "--finish",
        action="store_true",
        help="with --stream or --state: the last run; close open connections (--stream: after reading the "
        "existing files, and compute the aggregates)",
    )
    group.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="S",
        help="with --stream: seconds between checks for new data (default: 2)",
    )
    group.add_argument(
        "--compact",
        type=int,
        metavar="N",
        help="with --stream: merge every N small files of a table's day",
    )
    group.add_argument(
        "--keep",
        type=int,
        metavar="DAYS",
        help="with --stream: delete rows older than DAYS days",
    )


def _parse_duration(text: str) -> float:
    """Seconds. Raises UsageError."""
    try:
        found = parse_moment(f"+{text}", "--keep-old")
    except UsageError as error:
        raise UsageError(f"--keep-old {text}: give a duration, for example 30m or 1h") from error
    return found.nanoseconds / 1e9
