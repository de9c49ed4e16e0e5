"""What `kwsniff pipeline` is told on the command line."""

import argparse

from kwsniff.cli.layouts import add_layouts_option
from kwsniff.cli.limits import add_limit_option
from kwsniff.cli.port_option import add_port_option
from kwsniff.cli.times import add_time_options


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
    add_port_option(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    _add_sparks_options(parser)
    _add_stream_options(parser)
    _add_forms(parser)


def _add_sparks_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help="where Spark runs (default: local[*], this machine)")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, may be repeated",
    )
    parser.add_argument(
        "--buckets",
        type=int,
        metavar="N",
        help="tasks that connections are shared out among (default: by how much there is to read)",
    )
    parts = "cut plain files into parts of N MB (default: 128 to 2048, by how much there is to read)"
    parser.add_argument("--split-mb", type=int, metavar="N", help=parts)
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="where files between the stages lie, which all workers see (default: beside the output)",
    )


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
    parser.add_argument(
        "--compact",
        type=int,
        metavar="N",
        help="with --stream: N small files of a table's day become one",
    )
    parser.add_argument(
        "--keep",
        type=int,
        metavar="DAYS",
        help="with --stream: rows of the last DAYS days stay, older ones are removed",
    )
