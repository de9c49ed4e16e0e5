"""The options that filter calls, the same for every verb that has them, and the calls they select."""

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
    """Add the options that filter calls."""
    group = parser.add_argument_group("filters; a call must match all of them")
    group.add_argument(
        "--call", type=int, metavar="N", help="the call with this number (call_id in the tables)"
    )
    group.add_argument("--api", action="append", default=[], metavar="NAME|KEY", help="may be repeated")
    group.add_argument("--client", metavar="TEXT", help="part of the client id, an address, or address:port")
    group.add_argument(
        "--client-is", metavar="NAME", help="the whole client id; or the address of clients without one"
    )
    group.add_argument(
        "--topic", metavar="NAME", help="a topic, by name, or by an id if the capture shows its name"
    )
    group.add_argument("--group", metavar="NAME", help="a group id, or the key of a coordinator lookup")
    group.add_argument(
        "--error", action="append", default=[], metavar="NAME|CODE|any", help="may be repeated"
    )
    group.add_argument(
        "--status",
        action="append",
        default=[],
        metavar="NAME",
        help="a status of api_calls, such as unanswered; may be repeated",
    )
    group.add_argument(
        "--connection", metavar="ID|ADDRESS:PORT", help="connection_id, or the address and port of one side"
    )
    group.add_argument("--min-latency", metavar="TIME", help="answered after this time or longer, e.g. 10ms")


_FILTERS = (
    "call", "api", "client", "client_is", "topic", "group", "error", "status", "connection", "min_latency",
)  # fmt: skip


def are_chosen(args: argparse.Namespace) -> bool:
    """Whether any of those options is given. Does not import the modules that read them: they load slowly."""
    return any(getattr(args, name) not in (None, []) for name in _FILTERS)


def chosen_filters(args: argparse.Namespace) -> "Filters":
    """The filter these options give. Raises UsageError."""
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
    """The calls that match. Decodes their messages only if a filter needs it."""
    from kwsniff.view.call import Conversation

    conversation = Conversation(limits, reader.topics)
    for call in reader.calls():
        if filters.fits(call) and (
            not filters.looks_inside or filters.fits_inside(conversation.decode(call), conversation.topics)
        ):
            yield call


def refuse_pipes(captures: Sequence[str]) -> None:
    """Raises UsageError for input that can be read only once, if captures are read twice."""
    for name in captures:
        if name == "-" or (Path(name).exists() and not (Path(name).is_file() or Path(name).is_dir())):
            raise UsageError(
                f"{name}: a pipe cannot be read twice, as these filters need; write it to a file first"
            )
