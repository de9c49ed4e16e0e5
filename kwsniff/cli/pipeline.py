"""``kwsniff pipeline``: converts captures of any size and number to tables and aggregates, on Spark."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwsniff.cli.inputs import refuse_tables
from kwsniff.cli.options.limits import parse_limits
from kwsniff.cli.options.pipeline import add_arguments
from kwsniff.cli.options.times import refuse_times, since_and_until, time_range
from kwsniff.cli.standard_streams import print_message, say_broken, say_left, say_there, say_unread
from kwsniff.errors import UsageError
from kwsniff.memory import collect_as_usual
from kwsniff.sources.ports import AskedPorts
from kwsniff.texts import add_version, json_text, plural

if TYPE_CHECKING:
    from kwsniff.spark.run_result import Result

DONE, NOTHING_READ = 0, 1

_EXAMPLES = """examples:
  kwsniff pipeline rotated/ -o tables/                     on all cores of this machine
  kwsniff pipeline day.pcap.zst -o tables/ --master spark://host:7077
  kwsniff pipeline huge.pcap -o tables/ --conf spark.driver.memory=4g --table api_calls,latency_minutes
  kwsniff pipeline --stream /var/captures -o tables/       while tcpdump writes there; a later run continues

The pipeline also runs under spark-submit.

Tables are folders of parquet files by date; kwsniff explain TABLE describes one. Needs: pip install
'.[spark]' in a clone of kwsniff's repository.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "pipeline",
        help="convert many or huge captures to tables and aggregates, on Spark",
        description="Read captures of any size and number on Spark; write tables and aggregates.",
        epilog=_EXAMPLES,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 0, or 1 if there was nothing to read. Raises KwsniffError for captures, outputs or a
    Spark that fail."""
    from kwsniff.cli.options.ports import parse_ports

    ports = parse_ports(args.port)
    limits = parse_limits(args.limit)
    settings = dict(_parse_conf(text) for text in args.conf)
    _check(args)
    if args.stream:
        collect_as_usual()
        return _follow(args, settings, ports, limits)

    from kwsniff.spark.pipeline import chosen_tables, run_pipeline
    from kwsniff.spark.session import start_session
    from kwsniff.tables.stored_files import files_of_tables

    tables = [name.strip() for text in args.table for name in text.split(",")] or None
    chosen_tables(tables)  # before Spark starts
    before = files_of_tables(Path(args.output))
    since, until = since_and_until(args)
    spark = start_session(args.master, settings)
    result = run_pipeline(
        args.inputs,
        args.output,
        spark=spark,
        tables=tables,
        ports=ports,
        limits=limits,
        num_buckets=args.buckets,
        split_bytes=args.split_mb and args.split_mb << 20,
        delta=args.delta,
        form=args.format,
        mode=args.mode,
        again=args.again,
        tls_keylog=args.tls_keylog,
        since=since,
        until=until,
        scratch=args.scratch,
        state=args.state,
        finish=args.finish,
        keep_old=args.keep_old,
    )
    there = _say(args.output, result, before, ports)
    _say_shared(limits, result.facts.get("buckets", 1))
    if args.json:
        print(json_text(add_version(_describe(result)), indent=2))
    elif result.rows and not result.finished:
        _show(result)
    return DONE if there else NOTHING_READ


def _describe(result: "Result") -> dict[str, Any]:
    return {
        "output": str(result.output),
        "rows": result.rows,
        "captures": result.captures,
        "unread": [{"capture": each.name, "reason": each.why} for each in result.unread],
        **({"finished": result.finished} if result.finished else {}),
        **({"known": [*result.known]} if result.known else {}),
        **result.facts,
    }


def _say(output: str, result: "Result", before: Collection[str], ports: Sequence[int]) -> bool:
    """Reports captures that were not read and tables of earlier runs. Returns whether there was anything
    to read."""
    from kwsniff.tables.stored_files import files_of_tables

    if result.finished:
        print_message(
            "note: an earlier run over these captures ended before all tables had its rows; "
            f"{output} has all of them now (run {result.finished})"
        )
        return True
    if result.known:
        print_message(f"note: {plural(len(result.known), 'capture')} of earlier runs passed over")
        if not result.rows:
            return True
    unread = {each.name for each in result.unread}
    say_unread([str(each) for each in result.unread], len(result.captures) - len(unread))
    asked = AskedPorts(ports)
    asked.absent = set(result.absent_ports)
    packets = sum(row["packets"] - row["skipped_other_time"] for row in result.captures)
    there = bool(result.known) or say_there(packets, asked, missed=result.no_packets)
    say_broken([row for row in result.captures if row["capture"] not in unread])
    say_left(output, before, result.rows, files_of_tables(Path(output)))
    return there


def _say_shared(limits: Mapping[str, int], buckets: int) -> None:
    """Notes on limits from the command line that apply to each share of the connections separately."""
    from kwsniff.limits import OF_ALL_CONNECTIONS

    asked = [f"{name}={limits[name]}" for name in OF_ALL_CONNECTIONS if name in limits]
    if asked and buckets > 1:
        print_message(f"note: {', '.join(asked)} applies to each of {buckets} buckets of connections")


def _check(args: argparse.Namespace) -> None:
    from kwsniff.sources.paths import local_path
    from kwsniff.spark.file_systems import check_uri, is_uri

    time_range(args)
    for name in ("buckets", "split_mb", "interval"):
        value = getattr(args, name)
        if value is not None and value < (0 if name == "interval" else 1):
            raise UsageError(f"--{name.replace('_', '-')} {value} is too small")
    if bool(args.inputs) == bool(args.stream):
        raise UsageError("give either captures or --stream DIR")
    refuse_tables([name for name in args.inputs if not is_uri(name)])
    args.inputs = [name if is_uri(name) else local_path(name) for name in args.inputs]
    if is_uri(args.output):
        check_uri(args.output)
        if args.stream:
            raise UsageError(f"{args.output}: --stream writes only to a local folder")
    else:
        args.output = local_path(args.output)
    args.stream = args.stream and local_path(args.stream)
    if args.stream:
        refuse_times(args, "--stream, which reads every packet; run the pipeline over the directory later")
    if args.stream and args.scratch:
        raise UsageError("--stream keeps its state next to its tables; omit --scratch")
    if args.stream and args.table:
        raise UsageError("--stream writes all tables; omit --table")
    _check_forms(args)
    _check_states(args)
    if (args.compact, args.keep) != (None, None) and not args.stream:
        raise UsageError("--compact and --keep need --stream DIR")


def _check_states(args: argparse.Namespace) -> None:
    if (args.once or args.source) and not args.stream:
        raise UsageError("--once and --source need --stream DIR")
    if args.finish and not (args.stream or args.state):
        raise UsageError("--finish needs --stream DIR or --state DIR")
    if args.stream and args.keep_old:
        raise UsageError("--stream adds files to its tables; omit --keep-old")
    if args.stream and args.state:
        raise UsageError("--stream keeps its state next to its tables; omit --state")


def _check_forms(args: argparse.Namespace) -> None:
    from kwsniff.spark.delta import check_delta
    from kwsniff.spark.file_systems import is_uri
    from kwsniff.spark.table_formats import check_format

    if args.stream and args.delta:
        raise UsageError("--delta needs complete tables; run the pipeline over the directory later")
    if args.stream and (args.format, args.mode) != ("parquet", "overwrite"):
        raise UsageError(
            "--format and --mode cannot be used with --stream, which adds files to parquet tables"
        )
    if args.again and args.mode != "append":
        raise UsageError("--again needs --mode append: the other modes replace rows")
    if args.delta and (args.format, args.mode) != ("parquet", "overwrite"):
        raise UsageError("--delta writes tables of one run; use --format delta instead")
    check_format(args.format, args.mode, is_uri=is_uri(args.output))
    if args.delta:
        check_delta(args.output)


def _follow(
    args: argparse.Namespace, settings: dict[str, str], ports: list[int], limits: dict[str, int]
) -> int:
    from kwsniff.spark.compaction import Rules
    from kwsniff.spark.session import start_session

    rules = Rules(args.compact, args.keep)
    spark = start_session(args.master, settings)

    from kwsniff.spark.stream_sources import Streams, follow

    def tell() -> None:
        if args.json:
            print(json_text(add_version({"batch": stream.batches, "rows": stream.rows})), flush=True)
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
        rules=rules,
    )
    _say_shared(limits, args.buckets or 1)
    with closing(stream):
        if not stream.is_finished:
            follow(stream, interval=args.interval, once=args.once or args.finish, told=tell)
        if args.finish:
            stream.finish()
            say_unread([str(each) for each in stream.unread], stream.num_captures)
            tell()
    return 0


def _parse_conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--conf {text}: give a name and a value, for example spark.driver.memory=4g")
    return name.strip(), value


def _show(result: "Result") -> None:
    from kwsniff.texts import clean, in_bytes

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
