"""The options that choose calls, the same for every verb that takes them, and which calls they choose."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.errors import UsageError

if TYPE_CHECKING:
    from kwsniff.limits import Limits
    from kwsniff.view.capture import Call
    from kwsniff.view.filters import Filters
    from kwsniff.view.reader import CallReader


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose calls."""
    group = parser.add_argument_group("filters, all of which a call must fit")
    group.add_argument(
        "--call", type=int, metavar="N", help="the call of this number (call_id in the tables)"
    )
    group.add_argument("--api", action="append", default=[], metavar="NAME|KEY", help="may be repeated")
    group.add_argument("--client", metavar="TEXT", help="part of the client id, or address, or address:port")
    group.add_argument(
        "--client-is", metavar="NAME", help="the whole client id; or the address of clients without one"
    )
    group.add_argument("--topic", metavar="NAME", help="a topic, by name or by an id whose name was seen")
    group.add_argument("--group", metavar="NAME", help="a group id, or the key of a coordinator lookup")
    group.add_argument(
        "--error", action="append", default=[], metavar="NAME|CODE|any", help="may be repeated"
    )
    group.add_argument(
        "--status",
        action="append",
        default=[],
        metavar="NAME",
        help="as in api_calls: unanswered; may be repeated",
    )
    group.add_argument("--connection", metavar="ID|ADDRESS:PORT", help="connection_id, or one of its ends")
    group.add_argument("--min-latency", metavar="TIME", help="answered in this time or longer, e.g. 10ms")


_FILTERS = (
    "call", "api", "client", "client_is", "topic", "group", "error", "status", "connection", "min_latency",
)  # fmt: skip


def are_chosen(args: argparse.Namespace) -> bool:
    """Whether any of those options is given. What reads them takes a while to load."""
    return any(getattr(args, name) not in (None, []) for name in _FILTERS)


def chosen_filters(args: argparse.Namespace) -> "Filters":
    """What those options say. Raises UsageError."""
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.view.filters import Filters, parse_apis, parse_duration, parse_errors, parse_statuses

    catalog = load_catalog()
    return Filters(
        calls=None if args.call is None else frozenset((args.call,)),
        statuses=parse_statuses(args.status),
        apis=parse_apis(args.api, catalog),
        client=args.client,
        client_is=args.client_is,
        topic=args.topic,
        group=args.group,
        errors=parse_errors(args.error, catalog),
        connection=args.connection,
        min_latency_ns=None if args.min_latency is None else parse_duration(args.min_latency),
    )


def fitting(reader: "CallReader", filters: "Filters", limits: "Limits") -> Iterator["Call"]:
    """The calls that fit; their messages are decoded only where it takes that."""
    from kwsniff.view.call import Conversation

    conversation = Conversation(limits, reader.topics)
    for call in reader.calls():
        if filters.fits(call) and (
            not filters.looks_inside or filters.fits_inside(conversation.decode(call), conversation.topics)
        ):
            yield call


def refuse_pipes(captures: Sequence[str]) -> None:
    """Raises UsageError for what can be read only once, where captures are read twice."""
    for name in captures:
        if name == "-" or (Path(name).exists() and not (Path(name).is_file() or Path(name).is_dir())):
            raise UsageError(f"{name}: captures are read twice; write it to a file first")
