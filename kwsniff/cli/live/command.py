"""``kwsniff live``: Kafka traffic on an interface as it happens: a view, lines for other programs, tables,
metrics."""

import argparse
import os

from kwsniff.cli.help_text import group_of
from kwsniff.cli.live.options import check
from kwsniff.cli.options.filters import add_filters
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option
from kwsniff.cli.options.ports import add_port_option
from kwsniff.cli.options.times import add_time_options
from kwsniff.memory import collect_as_usual

_EXAMPLES = """examples:
  kwsniff live -i eth0                               a view of all Kafka on eth0; q ends it, ? shows the keys
  kwsniff live -i eth0 --port 9092 -o tables/        and parquet files, one directory per table
  kwsniff live -i any --json --stop-after 100        one JSON object per call
  kwsniff live -i any --json --lines                 one JSON object per second: rates, errors by client
  and by broker
  kwsniff live -i any --json --client shop --error any   failed calls of one client; filters as in show
  kwsniff live -i lo --metrics 9464                  Prometheus text at http://127.0.0.1:9464/metrics
  kwsniff live -i eth0 -o out/ --ring 10/64MB        and the last 10 files of raw packets in out/packets/
  ssh host tcpdump -U -w - port 9092 | kwsniff live -i -     packets from another machine
  kwsniff live -i incident.pcap --speed 10           replays a file at ten times its speed

kwsniff captures with dumpcap or tcpdump if one is installed, and needs no more rights than they do.
Ctrl-C or SIGTERM ends it and completes the files.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "live",
        help="watch Kafka on a network interface",
        description="Watch Kafka on an interface, in a pipe or in a replayed file: a view in a terminal, "
        "lines elsewhere, tables on request.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "-i",
        "--interface",
        action="append",
        required=True,
        metavar="IFACE|FILE|-",
        help="an interface such as eth0, lo, any (several with dumpcap); or a capture: -, a pipe, a file",
    )
    parser.add_argument(
        "--speed",
        metavar="N|max",
        help="replay a file N times as fast as it was captured, or as fast as possible",
    )
    add_time_options(parser)
    _add_capture_options(parser)
    _add_output_options(parser)
    add_filters(parser)
    parser.set_defaults(run=run)


def _add_capture_options(parser: argparse.ArgumentParser) -> None:
    add_port_option(parser)
    group_of(parser, "live capture").add_argument(
        "-f",
        "--filter",
        metavar="BPF",
        help="capture filter in libpcap syntax, instead of the one made from the ports",
    )
    group_of(parser, "live capture").add_argument(
        "--tunnels",
        action="store_true",
        help="also capture traffic inside VXLAN, Geneve, GRE, ERSPAN, GTP-U and IP in IP",
    )
    parser.add_argument("--duration", metavar="TIME", help="stop after this time: 30, 30s, 5m, 2h")
    parser.add_argument("--stop-after", type=int, metavar="N", help="stop after N calls")
    group_of(parser, "live capture").add_argument(
        "--tool",
        choices=("dumpcap", "tcpdump", "scapy"),
        help="capture tool (default: the first one available)",
    )
    group_of(parser, "advanced").add_argument(
        "--buffer",
        type=int,
        default=64,
        metavar="MB",
        help="size of the kernel's packet buffer (default: 64)",
    )
    group_of(parser, "advanced").add_argument(
        "--snaplen",
        type=int,
        default=262_144,
        metavar="BYTES",
        help="bytes kept of each packet (default: 262144)",
    )
    add_keylog_option(parser, ", which may still grow")
    add_limit_option(parser)
    add_layouts_option(parser)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per call, columns as in api_calls"
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="one line per interval, even on a terminal; with --json, one object per interval",
    )
    parser.add_argument(
        "--interval",
        metavar="TIME",
        default="1s",
        help="time between lines, or between updates of the view (default: 1s)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write parquet files as DIR/<table>/*.parquet")
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME[,NAME...]", help="write only these tables"
    )
    parser.add_argument(
        "--rotate",
        action="append",
        default=[],
        metavar="TIME|SIZE",
        help="start a new file after this time or at this size; may be given twice (default: 1m, 128MB)",
    )
    parser.add_argument(
        "--ring",
        metavar="N[/SIZE]",
        help="with -o: keep the last N files of raw packets (default size: 64MB)",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="TIME|SIZE",
        help="with -o: delete files older than this, or the oldest beyond this total size; may be given "
        "twice",
    )
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        help="serve Prometheus metrics over HTTP; on 127.0.0.1 unless a host is given",
    )


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if the user or an option ended it. 2 if the capture ended unexpectedly (the interface
    vanished, the tool was killed, a pipe broke); its tables are complete. Raises KwsniffError for a capture
    or an output that is not possible."""
    # Threads are short-lived: Arrow's own allocator keeps the memory they freed, the C library's returns it.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    wishes = check(args)

    from kwsniff.cli.live.loop import follow

    collect_as_usual()
    return follow(args, wishes)
