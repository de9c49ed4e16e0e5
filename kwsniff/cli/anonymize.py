"""``kwsniff anonymize``: captures that can be shown to others."""

import argparse
import sys
from dataclasses import asdict
from typing import IO, TYPE_CHECKING

from kwsniff.cli.inputs import add_captures, read_again, refuse_tables
from kwsniff.cli.options.anonymizing import add_anonymizing_options, read_key, say_anonymized, write_map
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.options.times import add_time_options, time_range
from kwsniff.cli.outputs import add_force_option, refuse_loss
from kwsniff.cli.progress import progress_bar
from kwsniff.cli.standard_streams import print_message, say_there, say_unread
from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from kwsniff.texts import add_version, clean, json_text, plural

if TYPE_CHECKING:
    from kwsniff.anonymize.anonymize import Anonymized
    from kwsniff.anonymize.names import Names
    from kwsniff.sources.tls import KeyLog

_EXAMPLES = """examples:
  kwsniff anonymize capture.pcap -o public.pcapng              with a random key
  kwsniff anonymize node1.pcap node2.pcap -o public.pcapng --key site.key --map names.tsv
  kwsniff anonymize day.pcap --since 22:06 --until 22:07 -o part.pcapng
  kwsniff anonymize tls.pcap --open-tls --tls-keylog keys.log -o public.pcapng    TLS becomes plain TCP

Times, sizes, ports, versions, error codes, offsets and ids of producers and topics stay. Letters become
letters, digits become digits; words of Kafka itself (consumer, __consumer_offsets) stay. Bytes that kwsniff
does not understand become zeros, as do UDP and what TLS encrypts. Check the result before you publish it.

exit status: 0 done; 1 no packets in the time range, and no file is written; 2 error
"""

DONE, NOTHING_FOUND = 0, 1


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "anonymize",
        help="replace every name in captures, to show them to others",
        description="Copy captures into one pcapng file with every name replaced: addresses, hosts, topics, "
        "groups, clients, users, settings' values, error texts, records. All else is unchanged, so that "
        "kwsniff and Wireshark show the same calls.",
        epilog=_EXAMPLES,
    )
    add_captures(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="pcapng file to write")
    add_force_option(parser)
    add_anonymizing_options(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--open-tls",
        action="store_true",
        help="write what --tls-keylog and secrets in the captures open as plain TCP, without names; secrets "
        "are never written",
    )
    add_port_option(parser)
    add_keylog_option(parser)
    add_time_options(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 done, 1 no packets. Raises KwsniffError for files that cannot be read or written."""
    from kwsniff.atomic_file import write_atomically
    from kwsniff.sources.paths import local_path

    time_range(args)
    Limits.with_changes(parse_limits(args.limit))
    args.output = local_path(args.output)
    refuse_tables(args.captures)
    if args.tls_keylog and not args.open_tls:
        raise UsageError("--tls-keylog needs --open-tls: without it, what TLS encrypts becomes zeros")
    refuse_loss(args.output, (".pcapng",), read=args.captures, force=args.force)
    names = read_key(args)
    with write_atomically(args.output, binary=True) as file, read_again(args.captures) as captures:
        args.captures = captures
        done = _anonymize(args, names, file)
        if not done.packets:
            file.close()
        else:
            write_map(args, names)
    if not done.packets:
        return NOTHING_FOUND
    if args.json:
        print(json_text(add_version({"output": args.output, **asdict(done)})))
        return DONE
    print(f"{plural(done.packets, 'packet')}, {plural(done.messages, 'message')}: {clean(args.output)}")
    if not args.key:
        print("The key is random; with --key FILE further captures get the same names.")
    return DONE


def _anonymize(args: argparse.Namespace, names: "Names", file: IO[bytes]) -> "Anonymized":
    from kwsniff.anonymize.anonymize import Anonymized, anonymize
    from kwsniff.sources.slices import Wanted
    from kwsniff.view.reader import CallReader

    times, limits = time_range(args), Limits.with_changes(parse_limits(args.limit))
    keylog: KeyLog = args.tls_keylog if args.open_tls else False
    with progress_bar(shown=sys.stderr.isatty()) as progress:
        reader = CallReader(
            args.captures, ports=parse_ports(args.port), tls_keylog=keylog, times=times, limits=limits,
            progress=progress,
        )  # fmt: skip
        say_unread([str(each) for each in reader.unread], len(reader.captures))
        wanted = [Wanted(everything=True) for _ in reader.captures]
        done = anonymize(reader, wanted, names, file, times=times, limits=limits, open_tls=keylog)
    for note in reader.notes:
        print_message(f"note: {note}")
    if not say_there(reader.packets and done.packets, reader.ports, missed=times.missed):
        return Anonymized()
    say_anonymized(done)
    return done
