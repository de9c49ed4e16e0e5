"""``kwsniff wireshark``: calls and findings of packets as columns and filters of Wireshark and tshark."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.cli.standard_streams import print_message
from kwsniff.errors import UsageError
from kwsniff.texts import clean, plural

if TYPE_CHECKING:
    from kwsniff.wireshark.plugin import Folders

_EXAMPLES = """examples:
  kwsniff wireshark --install            once: the plugin, into your own plugin folder
  kwsniff analyze day.pcap -o out
  kwsniff wireshark out                  index the packets; now open day.pcap in Wireshark
  kwsniff wireshark out -o indexes       elsewhere: tshark -o kwsniff.index:indexes -r day.pcap
  kwsniff wireshark --remove             the plugin and all indexes

A packet has fields for columns and filters of each call whose bytes it carries. These are kwsniff.call,
kwsniff.api, kwsniff.version, kwsniff.latency, its parts kwsniff.latency.request_transmission,
kwsniff.latency.network, kwsniff.latency.queue_wait, kwsniff.latency.broker, kwsniff.latency.deliberate_wait
and kwsniff.latency.response_transmission, and kwsniff.finding. Latencies are in seconds.
A finding about a connection is shown at the connection's first packet.

Wireshark's plugins cannot read parquet; an index takes about 210 bytes per call. The plugin recognises a
capture by its first packet, whatever its name. After you rewrite the tables, index them again. As root,
Wireshark 4.4 and later load no plugins.

exit status: 0 done; 1 nothing to index or remove; 2 error
"""

DONE, NOTHING_FOUND = 0, 1


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "wireshark",
        help="show calls, latency and findings in Wireshark and tshark",
        description="Show calls, latency and findings of a folder of tables in Wireshark and tshark, 4.0 or "
        "later.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder of tables, to index its packets")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--install", action="store_true", help="install or update the plugin")
    which.add_argument("--remove", action="store_true", help="remove the plugin and all indexes")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="write the indexes there instead of your Wireshark folder"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 done, 1 nothing to do. Raises KwsniffError for missing tables, files of others in the
    way and files that cannot be written."""
    if args.remove and args.folder is not None:
        raise UsageError("--remove takes no folder of tables")
    if args.output is not None and args.folder is None:
        raise UsageError("-o needs a folder of tables")
    if not (args.remove or args.install or args.folder is not None):
        raise UsageError("give a folder of tables, --install or --remove; see kwsniff wireshark --help")
    from kwsniff.wireshark.plugin import find_folders, install, remove

    folders = find_folders()
    if args.remove:
        removed = remove(folders)
        if not removed:
            print("nothing to remove")
            return NOTHING_FOUND
        indexes = plural(sum(path != folders.plugin for path in removed), "index file")
        print(f"removed {clean(str(folders.plugin))} and {indexes} in {clean(str(folders.indexes))}")
        return DONE
    if args.install:
        path = install(folders)
        print(
            f"installed {clean(str(path))}; restart Wireshark, and index tables with: kwsniff wireshark DIR"
        )
    return DONE if args.folder is None else _index(args, folders)


def _index(args: argparse.Namespace, folders: "Folders") -> int:
    from kwsniff.wireshark.packet_index import write_indexes

    place = folders.indexes if args.output is None else Path(args.output)
    written = write_indexes(args.folder, place)
    if not written:
        print_message("no packet of a call has a time: nothing to index")
        return NOTHING_FOUND
    option = "" if args.output is None else f" with -o kwsniff.index:{clean(args.output)}"
    messages = plural(sum(each.messages for each in written), "message")
    print(
        f"{messages} of {plural(len(written), 'capture')}, indexed in {clean(str(place))}; open "
        f"{'it' if len(written) == 1 else 'them'} in Wireshark{option}, and filter: kwsniff.latency > 0.1"
    )
    if args.output is None and not folders.plugin.is_file():
        print_message("note: the plugin is not installed: kwsniff wireshark --install")
    return DONE
