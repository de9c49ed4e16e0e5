"""``kwsniff verify``: compares kwsniff with tshark on a capture, call by call."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kwsniff.cli.inputs import read_again, refuse_tables
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.standard_streams import say_broken, say_there, say_unread
from kwsniff.cli.text_tables import Grid
from kwsniff.errors import UsageError
from kwsniff.sources.ports import AskedPorts
from kwsniff.texts import add_version, clean, json_text, plural

if TYPE_CHECKING:
    from kwsniff.verify.comparison import Agreement, Difference

_EXAMPLES = """examples:
  kwsniff verify capture.pcap               messages that both read, differences, and their reasons
  kwsniff verify capture.pcap --json        the same for scripts

kwsniff runs tshark through pyshark, at a few hundred messages per second, separately for each file.

exit status: 0 they agree, or every difference is explained; 1 an unexplained difference, or nothing to
read; 2 error
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "verify",
        help="compare kwsniff with tshark, call by call",
        description="Read captures with kwsniff and with tshark. Show where both agree, what only one of "
        "them sees, and why.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "captures",
        nargs="+",
        metavar="CAPTURE",
        help="pcap or pcapng files, or a directory of them; - for standard input",
    )
    add_port_option(parser)
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="differences and versions shown (default: 10)"
    )
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 every difference is explained, 1 one is not, or there was nothing to read. Raises
    KwsniffError if tshark cannot run."""
    if args.top < 1:
        raise UsageError(f"--top must be at least 1, not {args.top}")
    refuse_tables(args.captures)
    from kwsniff.sources.order import find_in_order
    from kwsniff.verify.comparison import compare_with_tshark
    from kwsniff.verify.tshark import witness_version

    witness = witness_version()
    ports = parse_ports(args.port)
    limits = parse_limits(args.limit)
    facts, agree, packets = [], True, 0
    asked = AskedPorts(ports)
    with read_again(args.captures) as captures:
        given = dict(zip(captures, args.captures, strict=True))
        found = find_in_order(captures)
        say_unread([str(each) for each in found.unread], len(found.captures))
        for name in found.captures:
            agreement = compare_with_tshark(name, ports=ports, limits=limits)
            agree = agree and agreement.agree
            packets += sum(each["packets"] for each in agreement.captures)
            asked.add(set(ports).difference(agreement.absent_ports))
            say_broken([{**each, "capture": given.get(name, name)} for each in agreement.captures])
            if args.json:
                facts.append({"capture": given.get(name, name), **agreement.as_dict()})
            else:
                _show(given.get(name, name), witness, agreement, args.top)
    if args.json:
        print(json_text(add_version({"witness": witness, "captures": facts}), indent=2))
    there = say_there(packets, asked)
    return 0 if agree and there else 1


def _show(name: str, witness: str, agreement: "Agreement", top: int) -> None:
    from kwsniff.cli.summary.summary import show_parts

    both = [plural(agreement.both[side], side.removesuffix("s")) for side in ("requests", "responses")]
    lines: list[str | Grid] = [f"{clean(name)}: kwsniff and {witness} both see {' and '.join(both)}"]
    if agreement.compared:
        lines.append(f"  the same: {', '.join(f'{what} of {n:,}' for what, n in agreement.compared.items())}")
    lines += _explain(agreement)
    lines += _versions(agreement, witness, top)
    lines += _differences(agreement, top)
    if agreement.agree:
        lines.append("every difference is explained")
    show_parts(lines, sys.stdout)


def _explain(agreement: "Agreement") -> Iterator[str]:
    from kwsniff.verify.comparison import REASONS

    for seen, counts in (
        ("complete with another packet for tshark", agreement.elsewhere),
        ("seen only by kwsniff", agreement.ours_alone),
        ("seen only by tshark", agreement.theirs_alone),
    ):
        for reason, number in counts.most_common():
            yield f"  {seen}: {plural(number, 'message')} {REASONS[reason]}"
    if agreement.paired_otherwise:
        responses = plural(agreement.paired_otherwise, "response")
        yield f"  paired by tshark with an earlier request with the same correlation id: {responses}"


def _versions(agreement: "Agreement", witness: str, top: int) -> Iterator[Grid]:
    rows = [
        (f"{number:,}", clean(api), "" if version is None else str(version), clean(why))
        for (api, version, why), number in agreement.undecoded.most_common()
    ]
    if rows:
        more = f" (first {top} of {len(rows)})" if len(rows) > top else ""
        yield Grid(
            f"Messages of which {witness} decoded only the header{more}",
            ("count", "api", "version", "reason"),
            rows[:top],
            ("api", "version", "count", "reason"),
        )


def _differences(agreement: "Agreement", top: int) -> Iterator[Grid]:
    found = agreement.differences
    if not found:
        return
    total = len(found) + agreement.left_out
    more = f" (first {top} of {total:,})" if total > top else ""
    yield Grid(
        f"Unexplained differences{more}",
        ("frame", "message", "call", "what", "kwsniff", "tshark"),
        [_row(each) for each in found[:top]],
        ("frame", "what", "kwsniff", "tshark", "call", "message"),
    )


def _row(each: "Difference") -> tuple[str, ...]:
    return (
        str(each.frame),
        "request" if each.to_broker else "response",
        "" if each.call_id is None else str(each.call_id),
        each.what,
        _cell(each.kwsniff),
        _cell(each.tshark),
    )


def _cell(value: Any) -> str:
    return "" if value is None else clean(str(value))
