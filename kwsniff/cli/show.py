"""``kwsniff show``: show messages as trees, or one JSON object per message."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kwsniff.cli.colors import line_printer
from kwsniff.cli.inputs import add_captures, refuse_tables
from kwsniff.cli.options.filters import add_filters, chosen_filter, refuse_pipes
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.options.times import add_time_options, refuse_times, time_range, zone_of
from kwsniff.cli.standard_streams import print_message, say_there, say_unread
from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from kwsniff.texts import add_version, json_pieces, json_text

if TYPE_CHECKING:
    from kwsniff.analysis.stored_calls import StoredCalls
    from kwsniff.filter.expression import Filter
    from kwsniff.view.call import DecodedCall, Drawing
    from kwsniff.view.reader import CallReader
    from kwsniff.view.selection import Selection

_LARGE: Final = 4 << 20
"""Size of a message, decompressed, above which its JSON is written in pieces."""

_EXAMPLES = """examples:
  kwsniff show capture.pcap                                every call: request and response, decoded
  kwsniff show capture.pcap --call 12000 --hexdump         one call, with its bytes
  kwsniff show capture.pcap --frame 1204                   the call of a packet in Wireshark
  kwsniff show capture.pcap --error any --api produce      calls of an API that got an error
  kwsniff show capture.pcap --where "topic = orders and latency > 10ms" -n 5
  kwsniff show capture.pcap --since +30s --until +35s      calls of five seconds
  kwsniff show rotated/ --json | jq 'select(.latency_ns > 1e8)'
  kwsniff show day.pcap --tables out --call 12000          uses the tables of analyze -o: much faster
  tcpdump -U -w - port 9092 | kwsniff show -               each call as it ends

Calls are in the order in which they ended. Secrets are redacted and record keys and values hidden unless you
ask for them. Exit status: 0 done, 1 no match, 2 error.
"""

DONE, NOTHING_FOUND = 0, 1


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "show",
        help="show messages as trees",
        description="Show the calls of captures: requests and responses as trees, with frames and times.",
        epilog=_EXAMPLES,
    )
    add_captures(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per message and line")
    parser.add_argument(
        "--hexdump", action="store_true", help="show the bytes next to the fields instead of the tree"
    )
    parser.add_argument(
        "--payload", action="store_true", help="also show keys, values and headers of records"
    )
    parser.add_argument(
        "--secrets", action="store_true", help="also show passwords, tokens and other secrets"
    )
    parser.add_argument("-n", "--stop-after", type=int, metavar="N", help="stop after N calls")
    parser.add_argument(
        "--tables",
        metavar="DIR",
        help="tables that analyze or pipeline made from these captures, to read only the packets needed",
    )
    add_time_options(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    add_port_option(parser)
    add_keylog_option(parser)
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--request-only", action="store_true", help="only requests")
    sides.add_argument("--response-only", action="store_true", help="only responses")
    add_filters(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 done, 1 the filters matched nothing. Raises KwsniffError for unreadable captures."""
    from kwsniff.view.call import Drawing
    from kwsniff.view.reader import CallReader

    if args.stop_after is not None and args.stop_after < 1:
        raise UsageError(f"--stop-after must be at least 1, not {args.stop_after}")
    limits = Limits.with_changes(parse_limits(args.limit))
    if args.json and args.hexdump:
        raise UsageError("--json and --hexdump cannot be combined")
    ports = parse_ports(args.port)
    refuse_tables(args.captures)
    filter_, times = chosen_filter(args), time_range(args)
    selection = _selection(filter_)
    reader = (
        CallReader(
            args.captures,
            ports=ports,
            tls_keylog=args.tls_keylog,
            limits=limits,
            times=times,
            selection=selection,
        )
        if args.tables is None or (filter_ and filter_.asks_packets)
        else _open_stored(args, filter_, ports, limits)
    )
    sides = (("request",) if args.request_only else ()) + (("response",) if args.response_only else ())
    drawing = Drawing(
        payload=args.payload,
        secrets=args.secrets,
        hexdump=args.hexdump,
        sides=sides or ("request", "response"),
        captures=tuple(reader.captures),
        zone=zone_of(args),
    )
    say_unread([str(each) for each in reader.unread], len(reader.captures))
    calls = _decode(reader, None if selection is None else selection.numbers, drawing, limits)
    shown = _show(islice(calls, args.stop_after), drawing, as_json=args.json)
    del calls  # closes the captures, which may add notes
    for note in reader.notes:
        print_message(f"note: {note}")
    there = (
        not isinstance(reader, CallReader)
        or not reader.is_complete
        or say_there(reader.packets, reader.ports, missed=times.missed)
    )
    if there and not shown:
        what = "no call matches the filters" if filter_ else "no Kafka messages in the captures"
        print_message(f"{what}; kwsniff analyze shows what the captures hold")
    return DONE if there and (shown or not (filter_ or times)) else NOTHING_FOUND


def _selection(filter_: "Filter | None") -> "Selection | None":
    if filter_ is None:
        return None
    from kwsniff.filter.filtered_calls import FilteredCalls

    return FilteredCalls(filter_)


def _open_stored(
    args: argparse.Namespace, filter_: "Filter | None", ports: Sequence[int], limits: Limits
) -> "StoredCalls":
    from kwsniff.analysis.stored_calls import StoredCalls
    from kwsniff.filter.parser import parse_filter
    from kwsniff.sources.paths import local_path

    refuse_times(args, "--tables, which cover all packets")
    refuse_pipes(args.captures)
    return StoredCalls(
        local_path(args.tables),
        args.captures,
        filter_ or parse_filter("call_id is not null"),
        ports=ports,
        tls_keylog=args.tls_keylog,
        limits=limits,
    )


def _decode(
    reader: "CallReader | StoredCalls", numbers: Set[int] | None, drawing: "Drawing", limits: Limits
) -> Iterator["DecodedCall"]:
    """Calls that have a message to show. `numbers`: of all calls that may come; the last one ends the
    reading."""
    from kwsniff.view.call import Conversation

    conversation = Conversation(limits, reader.topics)
    left = None if numbers is None else set(numbers)
    for call in reader.calls():
        decoded = conversation.decode(call)
        if any(part.side in drawing.sides for part in decoded.parts):
            yield decoded
        if left is not None and call.id is not None and call.status is not None:
            left.discard(call.id)
            if not left:
                return


def _show(calls: Iterable["DecodedCall"], drawing: "Drawing", *, as_json: bool) -> int:
    shown = 0
    draw = line_printer(_STYLES, plain=as_json)
    for decoded in calls:
        if as_json:
            for one in decoded.documents(drawing):
                sys.stdout.writelines(_pieces(decoded, add_version(one)))
                sys.stdout.write("\n")
        else:
            draw([*decoded.lines(drawing), ""])
        shown += 1
    return shown


def _pieces(decoded: "DecodedCall", document: Mapping[str, Any]) -> Iterable[str]:
    """A document as JSON, in pieces if it may have many megabytes."""
    bytes_ = 0
    for part in decoded.parts:
        if part.message is not None:
            found = (part.message.inner or {}).values()
            bytes_ += len(part.message.data) + sum(one.records.unpacked_bytes for one in found if one.records)
    return (json_text(document),) if bytes_ < _LARGE else json_pieces(document)


# Heading, message title, field name, decoding problem; other lines stay plain.
_STYLES: Final = (
    (re.compile(r"^\S.*$"), "bold"),
    (re.compile(r"^  (request|response)\b.*$"), "bold cyan"),
    (re.compile(r"^\s*!.*$|! crc wrong|(?<=  )[A-Z][A-Z_]{6,}$"), "red"),
    (re.compile(r"^    \s*[\w.]+(?=:)"), "green"),
    (re.compile(r"<(redacted|hidden), \d+ bytes>"), "dim"),
)
