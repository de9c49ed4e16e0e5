"""``--layouts NAME|DIR``: vendors' layouts, for every verb that reads captures or messages."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from kwsniff.cli.help_text import group_of


def add_layouts_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb."""
    group_of(parser, "reading captures").add_argument(
        "--layouts",
        metavar="NAME|DIR",
        action="append",
        help="layouts of a vendor for every server, in addition to Kafka's: kwsniff's own by name, or a "
        "folder; may be repeated (default: $KWSNIFF_LAYOUTS)",
    )


@contextmanager
def layouts_in_use(args: argparse.Namespace) -> Iterator[None]:
    """Makes them known to this process and its children. Raises LayoutError for invalid ones."""
    if getattr(args, "layouts", None) is None:
        yield
        return

    from kwsniff.layout.catalog import ENVIRONMENT, named_layouts

    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = named_layouts(args.layouts) or ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before
