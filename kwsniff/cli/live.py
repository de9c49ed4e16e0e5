"""``kwsniff live``: what Kafka does on an interface now: a view, lines for other programs, tables,
metrics."""

import argparse
import sys
from dataclasses import dataclass

from kwsniff.cli.analyze import parse_port
from kwsniff.cli.limits import add_limit_option, parse_limits
from kwsniff.errors import UsageError

_EXAMPLES = """examples:
  kwsniff live -i eth0                               a view of all Kafka on eth0; q ends it, ? shows the keys
  kwsniff live -i eth0 --port 9092 -o tables/        and parquet files, one directory per table
  kwsniff live -i any --json --stop-after 100        one JSON object per call
  kwsniff live -i lo --metrics 9464                  Prometheus text at http://127.0.0.1:9464/metrics
  kwsniff live -i eth0 -o out/ --ring 10/64MB        keeps the last 10 files of raw packets in out/packets/

Packets come from dumpcap or tcpdump where one of them is installed; it needs their rights and no others
(docs/live.md). Ctrl-C and SIGTERM end it, and complete the files.
"""

_MB = 1_000_000


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "live",
        help="watch Kafka on a network interface",
        description="Follow Kafka on an interface: a view in a terminal, lines elsewhere, tables as it goes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-i", "--interface", required=True, metavar="IFACE", help="for example eth0, lo, any")
    _add_capture_options(parser)
    _add_output_options(parser)
    parser.set_defaults(run=run)


def _add_capture_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="N[,N...]",
        help="broker port, may be repeated; without it Kafka is recognised on any port by its contents",
    )
    parser.add_argument(
        "-f", "--filter", metavar="BPF", help="capture filter in libpcap's language, in place of the ports'"
    )
    parser.add_argument("--duration", metavar="TIME", help="end after so long: 30, 30s, 5m, 2h")
    parser.add_argument("--stop-after", type=int, metavar="N", help="end once N calls have been seen")
    parser.add_argument(
        "--tool", choices=("dumpcap", "tcpdump", "scapy"), help="what captures (default: the first there is)"
    )
    parser.add_argument(
        "--buffer",
        type=int,
        default=64,
        metavar="MB",
        help="kernel memory for packets that wait (default: 64)",
    )
    parser.add_argument(
        "--snaplen", type=int, default=262_144, metavar="BYTES", help="kept of a packet (default: 262144)"
    )
    add_limit_option(parser)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per call, columns as in api_calls"
    )
    parser.add_argument("--lines", action="store_true", help="a line per interval, also on a terminal")
    parser.add_argument(
        "--interval", metavar="TIME", default="1s", help="time between two lines, or views (default: 1s)"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write parquet files here, DIR/<table>/*.parquet"
    )
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME[,NAME...]", help="write these tables only"
    )
    parser.add_argument(
        "--rotate",
        action="append",
        default=[],
        metavar="TIME|SIZE",
        help="close files after so long, or at such a size; may be given twice (default: 1m, 128MB)",
    )
    parser.add_argument(
        "--ring",
        metavar="N[/SIZE]",
        help="with -o: keep the last N files of raw packets (default size: 64MB)",
    )
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Prometheus text over HTTP; on 127.0.0.1 unless a host is given",
    )


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the options ask for, checked."""

    ports: list[int]
    limits: dict[str, int]
    interval: float
    duration: float | None
    rotate_seconds: float
    rotate_bytes: int
    ring_files: int
    ring_bytes: int
    metrics: tuple[str, int] | None


def run(args: argparse.Namespace) -> int:
    """Exit status 0, also when the interface vanished; what cannot be captured or written raises a
    KwsniffError."""
    wishes = check(args)

    from kwsniff.cli.live_run import follow

    return follow(args, wishes)


def check(args: argparse.Namespace) -> Wishes:
    """Raises UsageError for what makes no sense."""
    if args.stop_after is not None and args.stop_after < 1:
        raise UsageError(f"--stop-after must be at least 1, not {args.stop_after}")
    if not 1 <= args.buffer <= 2000:
        raise UsageError(f"--buffer {args.buffer}: give megabytes from 1 to 2000")
    if not 64 <= args.snaplen <= 262_144:
        raise UsageError(f"--snaplen {args.snaplen}: give bytes from 64 to 262144")
    if args.output is None and (args.ring or args.rotate or args.table):
        option = "--ring" if args.ring else "--rotate" if args.rotate else "--table"
        raise UsageError(f"{option} needs a directory to write to: add -o DIR")
    if args.json and args.lines:
        raise UsageError("--json and --lines both write to standard output; choose one")
    ring_files, ring_bytes = _parse_ring(args.ring)
    seconds, size = _parse_rotate(args.rotate)
    return Wishes(
        ports=[parse_port(port) for text in args.port for port in text.split(",")],
        limits=parse_limits(args.limit),
        interval=_parse_time("--interval", args.interval),
        duration=None if args.duration is None else _parse_time("--duration", args.duration),
        rotate_seconds=seconds,
        rotate_bytes=size,
        ring_files=ring_files,
        ring_bytes=ring_bytes,
        metrics=_parse_address(args.metrics),
    )


_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"kb": 1_000, "mb": _MB, "gb": 1000 * _MB}


def _split_unit(text: str) -> tuple[float, str] | None:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    try:
        return float(number), text.strip()[len(number) :].strip().lower()
    except ValueError:
        return None


def _parse_time(option: str, text: str) -> float:
    found = _split_unit(text)
    if not found or found[1] not in _SECONDS or not 0 < found[0] * _SECONDS[found[1]] < 1e9:
        raise UsageError(f"{option} {text}: give a time, for example 30s, 5m or 2h")
    return found[0] * _SECONDS[found[1]]


def _parse_size(option: str, text: str) -> int:
    found = _split_unit(text)
    if not found or found[1] not in _BYTES or not 1 <= found[0] * _BYTES[found[1]] < 1e15:
        raise UsageError(f"{option} {text}: give a size, for example 500kB, 64MB or 1GB")
    return round(found[0] * _BYTES[found[1]])


def _parse_rotate(texts: list[str]) -> tuple[float, int]:
    seconds, size = 60.0, 128 * _MB
    for text in (part for given in texts for part in given.split(",")):
        found = _split_unit(text)
        if found and found[1] in _BYTES:
            size = _parse_size("--rotate", text)
        elif found and found[1] in _SECONDS:
            seconds = _parse_time("--rotate", text)
        else:
            raise UsageError(f"--rotate {text}: give a time or a size, for example --rotate 5m --rotate 64MB")
    return seconds, size


def _parse_ring(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    files, slash, size = text.partition("/")
    if not files.strip().isdecimal() or int(files) < 1:
        raise UsageError(f"--ring {text}: give how many files to keep, and their size: --ring 10/64MB")
    return int(files), _parse_size("--ring", size) if slash else 64 * _MB


def _parse_address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--metrics {text}: give a port, or host:port, for example --metrics 9464")
    return host.strip("[]") or "127.0.0.1", int(port)


def says(text: str) -> None:
    """A line for the person, beside the output."""
    print(f"kwsniff: {text}", file=sys.stderr, flush=True)
