"""``kwsniff pipeline``: captures of any size and number to tables and aggregates, on Spark."""

import argparse
import sys
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.cli.layouts import add_layouts_option
from kwsniff.cli.limits import add_limit_option, parse_limits
from kwsniff.cli.standard_streams import say_broken, say_left, say_unread
from kwsniff.cli.times import add_time_options, refuse_times, say_missed, time_range
from kwsniff.errors import UsageError
from kwsniff.texts import json_text, versioned

if TYPE_CHECKING:
    from kwsniff.spark.pipeline import Result

_EXAMPLES = """examples:
  kwsniff pipeline rotated/ -o tables/                     on all cores of this machine
  kwsniff pipeline day.pcap.zst -o tables/ --master spark://host:7077
  kwsniff pipeline huge.pcap -o tables/ --conf spark.driver.memory=4g --table api_calls,latency_minutes
  kwsniff pipeline --stream /var/captures -o tables/       while tcpdump writes there; goes on later

Also as a job for spark-submit; see docs/spark.md.

Tables are folders of parquet files by date, described in docs/tables.md. Needs: pip install '.[spark]'
in a clone of kwsniff's repository.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "pipeline",
        help="many or huge captures to tables and aggregates, on Spark",
        description="Read captures of any size and number on Spark; write tables and aggregates.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


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
        help="a folder per table is put here; replaced as a whole",
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="make these tables and aggregates only, may be repeated",
    )
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="N[,N...]",
        help="broker port, may be repeated; without it Kafka is recognised on any port by its contents",
    )
    parser.add_argument("--master", metavar="URL", help="where Spark runs (default: local[*], this machine)")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, may be repeated",
    )
    add_limit_option(parser)
    add_layouts_option(parser)
    parser.add_argument(
        "--buckets",
        type=int,
        metavar="N",
        help="tasks that connections are shared out among (default: by how much there is to read)",
    )
    parts = "cut plain files into parts of N MB (default: 128 to 2048, by how much there is to read)"
    parser.add_argument("--split-mb", type=int, metavar="N", help=parts)
    _add_stream_options(parser)
    _add_forms(parser)


def _add_forms(parser: argparse.ArgumentParser) -> None:
    add_time_options(parser)
    parser.add_argument(
        "--tls-keylog",
        action="append",
        metavar="FILE",
        help="open TLS with the secrets in FILE (SSLKEYLOGFILE), where the executors see it; may be repeated",
    )
    parser.add_argument(
        "--delta",
        action="store_true",
        help="make every table a Delta table, too; needs pip install '.[delta]'",
    )
    parser.add_argument(
        "--format",
        default="parquet",
        metavar="NAME",
        help="parquet (default), or tables with a history: delta, iceberg (docs/spark.md)",
    )
    parser.add_argument(
        "--mode",
        default="overwrite",
        metavar="NAME",
        help="overwrite (default), append, or replace-dates: the days that this run has rows of",
    )
    parser.add_argument("--json", action="store_true", help="what was made, as JSON")


def _add_stream_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stream", metavar="DIR", help="follow a directory that tcpdump rotates into, in place of INPUT"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --stream: what one recorder writes, by name (broker1*) or folder (*/); once for each",
    )
    parser.add_argument("--once", action="store_true", help="with --stream: read what is there, then stop")
    parser.add_argument(
        "--finish",
        action="store_true",
        help="with --stream: read what is there, end what is open, compute the aggregates; no more comes",
    )
    parser.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="S",
        help="with --stream: seconds between looks (default: 2)",
    )


def run(args: argparse.Namespace) -> int:
    """Exit status 0; what cannot be read or written, or run, raises a KwsniffError."""
    from kwsniff.cli.analyze import parse_port

    ports = [parse_port(port) for text in args.port for port in text.split(",")]
    limits = parse_limits(args.limit)
    settings = dict(_parse_conf(text) for text in args.conf)
    _check(args)
    if args.stream:
        return _follow(args, settings, ports, limits)

    from kwsniff.findings.tables import files_of_tables
    from kwsniff.spark.session import start_session

    before = files_of_tables(Path(args.output))
    spark = start_session(args.master, settings)

    from kwsniff.spark.pipeline import run_pipeline

    result = run_pipeline(
        args.inputs,
        args.output,
        spark=spark,
        tables=[name.strip() for text in args.table for name in text.split(",")] or None,
        ports=ports,
        limits=limits,
        num_buckets=args.buckets,
        split_bytes=args.split_mb and args.split_mb << 20,
        delta=args.delta,
        form=args.format,
        mode=args.mode,
        tls_keylog=args.tls_keylog,
        since=args.since,
        until=args.until,
    )
    _say(args.output, result, before)
    if args.json:
        shown = {
            "output": str(result.output),
            "rows": result.rows,
            "captures": result.captures,
            "unread": [{"capture": each.name, "reason": each.why} for each in result.unread],
            **result.facts,
        }
        print(json_text(versioned(shown), indent=2))
    else:
        _show(result)
    return 0


def _say(output: str, result: "Result", before: Collection[str]) -> None:
    """What was not read, and what the folder held before."""
    from kwsniff.findings.tables import files_of_tables

    unread = {each.name for each in result.unread}
    say_unread([str(each) for each in result.unread], len(result.captures) - len(unread))
    say_missed(result.no_packets)
    say_broken([row for row in result.captures if row["capture"] not in unread])
    say_left(output, before, result.rows, files_of_tables(Path(output)))


def _check(args: argparse.Namespace) -> None:
    from kwsniff.sources.paths import local_path
    from kwsniff.spark.file_systems import check_uri, is_uri

    time_range(args)
    for name in ("buckets", "split_mb", "interval"):
        value = getattr(args, name)
        if value is not None and value < (0 if name == "interval" else 1):
            raise UsageError(f"--{name.replace('_', '-')} {value} is too small")
    if bool(args.inputs) == bool(args.stream):
        raise UsageError("give captures to read, or --stream DIR; one of them")
    args.inputs = [name if is_uri(name) else local_path(name) for name in args.inputs]
    if is_uri(args.output):
        check_uri(args.output)
        if args.stream:
            raise UsageError(f"{args.output}: --stream follows into a folder of this machine")
    else:
        args.output = local_path(args.output)
    args.stream = args.stream and local_path(args.stream)
    if args.stream:
        refuse_times(args, "--stream, which reads all that comes; run the pipeline over the directory later")
    if args.stream and args.table:
        raise UsageError("--stream makes all tables; leave --table out")
    _check_forms(args)
    if (args.once or args.finish or args.source) and not args.stream:
        raise UsageError("--once, --finish and --source go with --stream DIR")


def _check_forms(args: argparse.Namespace) -> None:
    from kwsniff.spark.delta import check_delta
    from kwsniff.spark.file_systems import is_uri
    from kwsniff.spark.lake import check_format

    if args.stream and args.delta:
        raise UsageError("--delta is for tables that are complete; run the pipeline over the directory later")
    if args.stream and (args.format, args.mode) != ("parquet", "overwrite"):
        raise UsageError("--format and --mode are not for --stream, which adds files to tables of parquet")
    if args.delta and (args.format, args.mode) != ("parquet", "overwrite"):
        raise UsageError("--delta makes tables of one run; for more say --format delta alone")
    check_format(args.format, args.mode, is_uri=is_uri(args.output))
    if args.delta:
        check_delta(args.output)


def _follow(
    args: argparse.Namespace, settings: dict[str, str], ports: list[int], limits: dict[str, int]
) -> int:
    from kwsniff.spark.session import start_session

    spark = start_session(args.master, settings)

    from kwsniff.spark.stream_sources import Streams, follow

    def tell() -> None:
        if args.json:
            print(json_text(versioned({"batch": stream.batches, "rows": stream.rows})), flush=True)
        else:
            counts = ", ".join(f"{rows:,} {name}" for name, rows in stream.rows.items() if rows)
            print(f"batch {stream.batches}: {counts}", flush=True)

    stream = Streams(
        args.stream,
        args.output,
        spark=spark,
        sources=args.source,
        ports=ports,
        limits=limits,
        num_buckets=args.buckets or 1,
        tls_keylog=args.tls_keylog,
    )
    with closing(stream):
        if not stream.is_finished:
            follow(stream, interval=args.interval, once=args.once or args.finish, told=tell)
        if args.finish:
            stream.finish()
            tell()
    return 0


def _parse_conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--conf {text}: give a name and a value, for example spark.driver.memory=4g")
    return name.strip(), value


def _show(result: "Result") -> None:
    from kwsniff.texts import clean, in_bytes, plural

    packets = sum(row["packets"] for row in result.captures)
    size = in_bytes(sum(row["bytes"] for row in result.captures))
    print(f"{plural(len(result.captures), 'capture')}, {plural(packets, 'packet')}, {size}", file=sys.stdout)
    for row in result.captures:
        if row["damaged"] or row["truncated"]:
            why = "; ".join(row["notes"]) or ("damaged" if row["damaged"] else "ends inside a packet")
            print(f"  {clean(row['capture'])}: {clean(why)}")
    width = max(map(len, result.rows))
    for name, rows in result.rows.items():
        print(f"  {name:<{width}}  {rows:>12,}  {result.output}/{name}")
