"""The option --tls-keylog: secrets that decrypt TLS."""

import argparse

from kwsniff.cli.help_text import group_of


def add_keylog_option(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add the option to a verb. `note`: what the help says of the file."""
    group_of(parser, "reading captures").add_argument(
        "--tls-keylog",
        action="append",
        metavar="FILE",
        help=f"decrypt TLS with the secrets in FILE (SSLKEYLOGFILE format){note}, may be repeated",
    )
