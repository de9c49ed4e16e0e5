"""``kwsniff slice``: the packets of selected calls as a pcapng file, for Wireshark."""

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from kwsniff.cli.inputs import add_captures, open_inputs, read_again, refuse_tables
from kwsniff.cli.options.anonymizing import (
    add_anonymize_option,
    check_anonymizing,
    read_key,
    say_anonymized,
    write_map,
)
from kwsniff.cli.options.filters import add_filters, chosen_filter
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.options.times import add_time_options, time_range
from kwsniff.cli.outputs import add_force_option, refuse_loss
from kwsniff.cli.progress import Progress, progress_bar
from kwsniff.cli.standard_streams import print_message, say_there, say_unread
from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from kwsniff.texts import add_version, clean, json_text, plural

if TYPE_CHECKING:
    from kwsniff.filter.expression import Filter
    from kwsniff.sources.times import TimeRange
    from kwsniff.view.wanted_packets import WantedPackets

_EXAMPLES = """examples:
  kwsniff slice capture.pcap --call 23000 -o call.pcapng     the packets of one call
  kwsniff slice rotated/ --error any --handshake -o errors.pcapng
  kwsniff slice day.pcap.zst --client shop --context 500ms -o shop.pcapng    with packets around them
  kwsniff slice day.pcap --finding stale_leader -o proof.pcapng    the proof of a finding of kwsniff why
  kwsniff slice day.pcap --since 22:06 --until 22:07 -o part.pcapng    every packet of a minute
  kwsniff slice day.pcap --finding stale_leader --anonymize --key site.key -o public.pcapng
  kwsniff slice tls.pcap --tls-keylog keys.log --call 9000 --secrets -o one.pcapng    Wireshark decrypts it

exit status: 0 done; 1 no match, and no file is written; 2 error
"""

DONE, NOTHING_FOUND = 0, 1
_WHOLE = "all"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "slice",
        help="extract the packets of calls, for Wireshark",
        description="Copy the packets of selected calls into a pcapng file: bytes, link types and times "
        "unchanged, with comments that name the calls.",
        epilog=_EXAMPLES,
    )
    add_captures(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="pcapng file to write")
    add_force_option(parser)
    parser.add_argument(
        "--handshake",
        action="store_true",
        help="also the TCP handshakes of the calls' connections",
    )
    parser.add_argument(
        "--context",
        metavar="TIME|all",
        help="all packets of the calls' connections from TIME before to TIME after a call, or all of them",
    )
    parser.add_argument(
        "--secrets",
        action="store_true",
        help="write the TLS secrets of these connections, from --tls-keylog or the captures, into the file; "
        "includes whole connections, as decryption needs them",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON, with comments")
    add_anonymize_option(parser)
    add_port_option(parser)
    add_keylog_option(parser)
    add_time_options(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    add_filters(parser)
    parser.add_argument("--finding", metavar="NAME", help="the calls or packets that prove a finding of why")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 done, 1 no match. Raises KwsniffError for files that cannot be read or written."""
    from kwsniff.atomic_file import write_atomically

    filter_, times, around = chosen_filter(args), time_range(args), _around(args)
    Limits.with_changes(parse_limits(args.limit))
    _check(args, everything=not filter_ and not args.finding, bounded=bool(times))
    args.names = read_key(args) if args.anonymize else None
    with write_atomically(args.output, binary=True) as file, read_again(args.captures) as captures:
        args.captures = captures
        with progress_bar(shown=sys.stderr.isatty()) as progress:
            packets, wanted = _slice(args, filter_, times, around, file, progress=progress)
        if not packets:
            file.close()
        elif args.names is not None:
            write_map(args, args.names)
    if not packets:
        return NOTHING_FOUND
    if args.json:
        print(json_text(add_version(_describe(args.output, packets, wanted))))
        return DONE
    print(f"{plural(packets, 'packet')} of {plural(wanted.calls, 'call')}: {clean(args.output)}")
    return DONE


def _describe(output: str, packets: int, wanted: "WantedPackets") -> dict[str, Any]:
    """Contents of the file, and the comments of its packets, by their frame numbers in the captures."""
    return {
        "output": output,
        "packets": packets,
        "calls": wanted.calls,
        "comments": [
            {"capture": capture, "frame": frame, "comments": texts}
            for capture, each in zip(wanted.captures, wanted.of, strict=True)
            for frame, texts in sorted(each.comments.items())
        ],
    }


def _check(args: argparse.Namespace, *, everything: bool, bounded: bool) -> None:
    from kwsniff.sources.paths import local_path

    args.output = local_path(args.output)
    refuse_tables(args.captures)
    check_anonymizing(args)
    refuse_loss(args.output, (".pcapng",), read=args.captures, force=args.force)
    if everything and not bounded:
        raise UsageError(
            "nothing selected: give a filter, --finding, --since or --until; see kwsniff slice --help"
        )
    if args.finding:
        from kwsniff.findings.rule import load_rules

        names = [rule.name for rule in load_rules()]
        if args.finding not in names:
            near = get_close_matches(args.finding, names, 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "kwsniff why names those of a capture"
            raise UsageError(f"unknown finding '{args.finding}': {hint}")


def _around(args: argparse.Namespace) -> int | None:
    """Nanoseconds; -1: whole connections."""
    from kwsniff.filter.literals import read_duration

    if args.secrets or args.context == _WHOLE:
        return -1
    if args.context is None:
        return None
    span = read_duration(args.context)
    if span is None:
        raise UsageError(
            f"--context: '{args.context}' is not a duration: give a number and ns, us, ms, s or m, for "
            "example 10ms"
        )
    return span


def _slice(
    args: argparse.Namespace,
    filter_: "Filter | None",
    times: "TimeRange",
    around: int | None,
    file: IO[bytes],
    *,
    progress: Progress | None,
) -> tuple[int, "WantedPackets"]:
    """Writes the packets; returns their number, and the selection."""
    from kwsniff.filter.expression import among, both
    from kwsniff.filter.filtered_calls import FilteredCalls
    from kwsniff.view.reader import CallReader
    from kwsniff.view.wanted_packets import WantedPackets

    proof = _find_proof(args) if args.finding else _Proof(None, [])
    if not proof.read:
        return 0, WantedPackets([])
    if proof.calls is not None:
        filter_ = both(filter_, among("call_id", proof.calls))
    reader = CallReader(
        args.captures, ports=parse_ports(args.port), tls_keylog=args.tls_keylog, times=times,
        limits=Limits.with_changes(parse_limits(args.limit)),
        selection=FilteredCalls(filter_) if filter_ else None, progress=progress,
    )  # fmt: skip
    say_unread([str(each) for each in reader.unread], len(reader.captures))
    wanted = WantedPackets(reader.captures, around=around, handshakes=args.handshake, finding=args.finding)
    for call in reader.calls():
        wanted.add(call)
    for note in reader.notes:
        print_message(f"note: {note}")
    there = say_there(reader.packets, reader.ports, missed=times.missed)
    for name, frame in proof.frames:
        wanted.add_single(name, frame)
    for each in wanted.of:
        each.everything = filter_ is None
    if there and wanted.is_empty:
        print_message("no match; no file was written")
    if wanted.is_empty or not there:
        return 0, wanted
    return _write(file, reader.captures, wanted, args, times), wanted


def _write(
    file: IO[bytes],
    captures: Sequence[str],
    wanted: "WantedPackets",
    args: argparse.Namespace,
    times: "TimeRange",
) -> int:
    """Writes the packets of some captures; returns their number."""
    if args.names is not None:
        return _write_anonymized(file, wanted, args, times)
    from kwsniff.sources.slice_secrets import add_secrets
    from kwsniff.sources.slices import SliceWriter, copy_packets

    with add_secrets(file, args.tls_keylog or () if args.secrets else ()) as body:
        out = SliceWriter(body)
        for name, each in zip(captures, wanted.of, strict=True):
            if not each.is_empty:
                copy_packets(name, each, out, since=times.since, until=times.until, secrets=args.secrets)
    if out.timeless:
        packets = plural(out.timeless, "packet")
        print_message(f"note: {packets} without a time in the capture, written as 1970-01-01")
    return out.packets


def _write_anonymized(
    file: IO[bytes], wanted: "WantedPackets", args: argparse.Namespace, times: "TimeRange"
) -> int:
    """The same without names."""
    from kwsniff.anonymize.anonymize import anonymize
    from kwsniff.view.reader import CallReader

    limits = Limits.with_changes(parse_limits(args.limit))
    reader = CallReader(
        args.captures, ports=parse_ports(args.port), tls_keylog=False, times=times, limits=limits
    )
    done = anonymize(reader, wanted.of, args.names, file, times=times, limits=limits)
    say_anonymized(done)
    return done.packets


class _Proof(NamedTuple):
    """The proof of a finding: calls, or packets if no call proves it, with their capture."""

    calls: frozenset[int] | None
    frames: list[tuple[str, int]]
    read: bool = True
    """Whether there was anything to evaluate."""


def _find_proof(args: argparse.Namespace) -> _Proof:
    from kwsniff.findings.evaluate import evaluate, fetch

    with open_inputs(args.captures, args) as (database, *_, read):
        findings = [each for each in evaluate(database) if each.finding == args.finding]
        spans = fetch(database, "select capture, first_time, last_time from captures")
    frames = []
    for finding in findings:
        within = [
            span["capture"]
            for span in spans
            if len(spans) == 1
            or (span["first_time"] and span["first_time"] <= (finding.first_time or 0) <= span["last_time"])
        ]
        frames += [(within[0], frame) for frame in (() if finding.call_ids or not within else finding.frames)]
    return _Proof(frozenset(number for each in findings for number in each.call_ids), frames, read)
