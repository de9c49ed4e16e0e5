"""``--where`` and its short forms, the same for every verb that chooses calls."""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kwsniff.cli.options.times import zone_of
from kwsniff.errors import UsageError

if TYPE_CHECKING:
    from kwsniff.filter.expression import Filter

_ENDPOINT: Final = re.compile(r"\[?([^\[\]]+?)\]?:(\d{1,5})")


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb whose calls are chosen by it alone."""
    parser.add_argument(
        "--where",
        metavar="EXPRESSION",
        help='only these calls, for example "api_name = Produce and latency > 100ms"; kwsniff explain '
        "api_calls lists the columns",
    )


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose calls."""
    group = parser.add_argument_group("filters; a call must match all of them")
    group.add_argument(
        "--where",
        metavar="EXPRESSION",
        help='by columns of api_calls, e.g. "latency > 100ms and topic in (orders, carts)"; kwsniff '
        "explain api_calls lists the columns",
    )
    group.add_argument("--call", type=int, metavar="N", help="the call with this call_id")
    group.add_argument(
        "--frame", type=_packet_number, metavar="N", help="a packet of the call, as Wireshark counts"
    )
    group.add_argument(
        "--stream", type=_packet_number, metavar="N", help="its TCP stream, as Wireshark counts (tcp.stream)"
    )
    group.add_argument("--api", action="append", default=[], metavar="NAME|KEY", help="may be repeated")
    group.add_argument("--client", metavar="TEXT", help="part of the client id, an address, or address:port")
    group.add_argument(
        "--client-is", metavar="NAME", help="the whole client id; or the address of clients without one"
    )
    group.add_argument("--topic", metavar="NAME", help="a topic of the call")
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


_OPTIONS: Final = (
    "where",
    "call",
    "frame",
    "stream",
    "api",
    "client",
    "client_is",
    "topic",
    "error",
    "status",
    "connection",
)


def _packet_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def are_chosen(args: argparse.Namespace) -> bool:
    """Whether any of those options is given. Does not import the modules that read them: they load slowly."""
    return any(getattr(args, name, None) not in (None, []) for name in _OPTIONS)


def chosen_filter(args: argparse.Namespace) -> "Filter | None":
    """The filter that these options are; None without one. Raises UsageError."""
    if not are_chosen(args):
        return None
    from kwsniff.filter.expression import both
    from kwsniff.filter.parser import parse_filter

    found = None
    for text in (*_short_forms(args), *((args.where,) if args.where is not None else ())):
        found = both(found, parse_filter(text, zone_of(args)))
    return found


def _short_forms(args: argparse.Namespace) -> Iterator[str]:
    """The options but `--where`, in the language of filters."""
    from kwsniff.filter.tokens import quote

    if getattr(args, "call", None) is not None:
        yield f"call_id = {args.call}"
    for name in ("frame", "stream"):
        if getattr(args, name, None) is not None:
            yield f"{name} = {getattr(args, name)}"
    if apis := getattr(args, "api", None):
        yield " or ".join(_apis(apis))
    if getattr(args, "client", None) is not None:
        name = quote(args.client)
        ends = _endpoint("client", args.client)
        yield " or ".join([f"client_id ~ {name}", f"client_address = {name}", *ends])
    if getattr(args, "client_is", None) is not None:
        name = quote(args.client_is)
        yield f"client_id = {name} or client_id is null and client_address = {name}"
    if getattr(args, "topic", None) is not None:
        yield f"topic = {quote(args.topic)}"
    if errors := getattr(args, "error", None):
        yield _errors(errors)
    if statuses := getattr(args, "status", None):
        yield f"status in ({', '.join(map(_status, statuses))})"
    if getattr(args, "connection", None) is not None:
        yield _connection(args.connection)


def _apis(texts: Sequence[str]) -> Iterator[str]:
    """Keys, and names of APIs whose key is not the same API at every server."""
    from kwsniff.filter.literals import near_names
    from kwsniff.filter.tokens import quote
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.layout.spoken import api_names, owner_of

    keys, names = [], []
    catalog = load_catalog()
    for text in texts:
        api = catalog.api(text)
        if api or text.strip().isdecimal():
            keys.append(str(api.key if api else int(text)))
        elif api := owner_of(catalog, text).api(text):
            names.append(quote(api.name))
        else:
            raise UsageError(f"unknown API '{text}': {near_names(text, api_names(catalog), 'apis')}")
    yield from [f"api_key in ({', '.join(keys)})"] if keys else []
    yield from [f"api_name in ({', '.join(names)})"] if names else []


def _errors(texts: Sequence[str]) -> str:
    from kwsniff.filter.attributes import load_attributes
    from kwsniff.filter.literals import ValueProblem, read_value
    from kwsniff.zones import UTC_ZONE

    codes = []
    for text in texts:
        if text.strip().lower() != "any":
            try:
                codes.append(str(read_value(text.strip(), load_attributes()["error"], UTC_ZONE)))
            except ValueProblem as problem:
                raise UsageError(str(problem)) from None
    parts = ["error_count > 0"] if len(codes) < len(texts) else []
    return " or ".join([*parts, *([f"error in ({', '.join(codes)})"] if codes else [])])


def _status(text: str) -> str:
    from kwsniff.core.declared import ENUMS
    from kwsniff.texts import suggest

    name = text.strip().lower().replace("-", "_")
    if name not in ENUMS["status"]:
        raise UsageError(f"unknown status '{name}'; {suggest(name, ENUMS['status'])}")
    return name


def _connection(text: str) -> str:
    if text.isascii() and text.isdecimal():
        return f"connection_id = {text}"
    ends = [*_endpoint("client", text), *_endpoint("broker", text)]
    if not ends:
        raise UsageError(f"--connection {text}: give a connection_id, or ADDRESS:PORT of one side")
    return " or ".join(ends)


def _endpoint(side: str, text: str) -> list[str]:
    """Condition for one side, if the text is address:port, IPv6 with brackets or without."""
    from kwsniff.filter.tokens import quote

    found = _ENDPOINT.fullmatch(text)
    return [f"{side}_address = {quote(found[1])} and {side}_port = {found[2]}"] if found else []


def refuse_pipes(captures: Sequence[str]) -> None:
    """Raises UsageError for input that can be read only once, if captures are read twice."""
    for name in captures:
        if name == "-" or (Path(name).exists() and not (Path(name).is_file() or Path(name).is_dir())):
            raise UsageError(
                f"{name}: a pipe cannot be read twice, as these filters need; write it to a file first"
            )
