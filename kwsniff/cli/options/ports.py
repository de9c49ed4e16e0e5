"""The option --port: the ports of brokers."""

import argparse
from collections.abc import Sequence

from kwsniff.cli.help_text import group_of
from kwsniff.errors import UsageError


def add_port_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb."""
    group_of(parser, "reading captures").add_argument(
        "--port",
        action="append",
        default=[],
        metavar="N[,N...]",
        help="broker port, may be repeated; without it, kwsniff recognises Kafka on any port by its contents",
    )


def parse_ports(texts: Sequence[str]) -> list[int]:
    """The ports of all options given. Raises UsageError."""
    return [_parse_port(port) for text in texts for port in text.split(",")]


def _parse_port(text: str) -> int:
    if not text.strip().isdecimal() or not 0 < int(text) < 65536:
        raise UsageError(f"--port {text}: give a number from 1 to 65535, for example --port 9092")
    return int(text)
