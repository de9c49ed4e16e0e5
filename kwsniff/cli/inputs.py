"""Input of the verbs that evaluate tables: captures, or one folder of tables; and text wrapping."""

import argparse
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from kwsniff.cli.options.filters import chosen_filter, refuse_pipes
from kwsniff.cli.options.keylogs import add_keylog_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.places import captures_of, parse_places
from kwsniff.cli.options.ports import add_port_option, parse_ports
from kwsniff.cli.options.times import add_time_options, asked_words, refuse_times, since_and_until
from kwsniff.cli.outputs import PAGE, add_force_option, refuse_loss
from kwsniff.cli.progress import progress_bar
from kwsniff.cli.standard_streams import say_read
from kwsniff.errors import UsageError
from kwsniff.temporary import temporary_folder, translate_errors

if TYPE_CHECKING:
    import duckdb


HELP = "captures as for analyze, or one folder of tables from analyze, live or pipeline"
TABLES = "a folder of tables, which covers all packets; give the captures instead"
_NARROWEST, _WIDEST = 60, 100


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """The options for reading captures."""
    add_port_option(parser)
    add_keylog_option(parser)
    add_time_options(parser)
    add_limit_option(parser)


class Opened(NamedTuple):
    """Tables that a verb evaluates."""

    database: "duckdb.DuckDBPyConnection"
    files: Mapping[str, list[str]]
    """Table -> its files."""
    capture: str
    tables: str
    """The captures and the folder of tables, quoted for use in commands."""
    read: bool
    """Whether the input has anything that was asked for."""


@contextmanager
def open_inputs(
    inputs: Sequence[str], args: argparse.Namespace, *, every_view: bool = True
) -> Iterator[Opened]:
    """The tables of the inputs as a database. `every_view`: as open_folder takes it. Raises KwsniffError if
    nothing can be read."""
    from kwsniff.analysis.filtered_folder import open_chosen, resolve_where
    from kwsniff.findings.views import READ, is_folder_of_tables

    where = chosen_filter(args)
    places = parse_places(getattr(args, "place", []))
    named = [*inputs, *captures_of(places)]
    folders = [name for name in named if is_folder_of_tables(name)]
    if folders and len(named) > 1:
        raise UsageError(f"{folders[0]} is a folder of tables; give one such folder, or captures")
    if folders:
        if getattr(args, "keep", None) is not None:
            raise UsageError(f"--keep: {folders[0]} is already a folder of tables; give captures")
        refuse_times(args, TABLES)
        with open_chosen(folders[0], where, every_view=every_view) as (database, files):
            yield Opened(database, files, "CAPTURE", shlex.quote(folders[0]), read=True)
        return
    from kwsniff.analysis.analyze import analyze
    from kwsniff.limits import Limits
    from kwsniff.memory import foreign_bytes, memory_left

    (since, until), limits = since_and_until(args), parse_limits(args.limit)
    most = Limits.with_changes(limits).memory + foreign_bytes()
    keep: str | None = getattr(args, "keep", None)
    # On disk, because captures may be larger than memory.
    with temporary_folder() if keep is None else nullcontext(keep) as folder:
        with progress_bar(shown=sys.stderr.isatty()) as progress:
            summary = analyze(
                inputs,
                output=folder,
                ports=parse_ports(args.port),
                limits=limits,
                tls_keylog=args.tls_keylog,
                tables=READ if keep is None else None,
                since=since,
                until=until,
                progress=progress,
                places=places,
            ).summary
        read = say_read(summary)
        how = {"memory": f"{memory_left(most) // 1_000_000}MB", "every_view": every_view}
        with open_chosen(folder, resolve_where(where, named), **how) as (database, files):
            words = shlex.join([*named, *asked_words(args)])
            yield Opened(database, files, words, shlex.quote(keep or "DIR"), read)


def add_captures(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Add the argument to a verb that reads captures."""
    parser.add_argument(
        "captures",
        nargs=nargs,
        metavar="CAPTURE",
        help="pcap or pcapng, plain or inside gzip or zstd; a directory of them; - for standard input",
    )


def refuse_tables(captures: Sequence[str]) -> None:
    """Raises UsageError for a folder of tables if the verb reads captures."""
    folders = [name for name in captures if Path(name).is_dir()]
    if not folders:
        return
    from kwsniff.findings.views import is_folder_of_tables
    from kwsniff.sources.files import find_captures

    for name in folders:
        if is_folder_of_tables(name) and not find_captures([name], required=False).captures:
            verbs = "kwsniff why, upgrade, compare and sql read tables"
            raise UsageError(f"{name} is a folder of tables, and this verb reads captures; {verbs}")


@contextmanager
def read_again(captures: Sequence[str]) -> Iterator[list[str]]:
    """The captures; standard input is copied to a temporary file, for verbs that read captures twice.

    Raises UsageError for a pipe with a name.
    """
    from kwsniff.sources.files import STANDARD_INPUT, CaptureFile, find_captures

    refuse_pipes([name for name in captures if name != STANDARD_INPUT])
    if STANDARD_INPUT not in captures:
        yield [*captures]
        return
    find_captures([STANDARD_INPUT])  # refuses a terminal
    with temporary_folder() as folder:
        kept = Path(folder) / "standard-input"
        with translate_errors(kept), CaptureFile(STANDARD_INPUT) as given, kept.open("wb") as file:
            while piece := given.read(1 << 20):
                file.write(piece)
        yield [str(kept) if name == STANDARD_INPUT else name for name in captures]


def add_page_options(parser: argparse.ArgumentParser, what: str) -> None:
    """--html and its options."""
    parser.add_argument("--html", metavar="FILE", help=f"also write {what} into one HTML file")
    add_force_option(parser)


@contextmanager
def page_file(args: argparse.Namespace) -> Iterator[IO[str] | None]:
    """The file of --html, under a hidden name until it is complete; None without --html.

    Raises KwsniffError if it cannot be written, or would replace a file other than a page.
    """
    path: str | None = args.html
    if path is None:
        yield None
        return
    refuse_loss(path, PAGE, read=args.inputs, force=args.force)
    from kwsniff.atomic_file import write_atomically

    with write_atomically(path) as file:
        yield file


def width() -> int:
    """Columns of the terminal, from 60 to 100."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def wrap(text: str, room: int, begin: str = "") -> list[str]:
    """A text in lines of `room` columns; lines after the first are indented by the length of `begin`.

    A `begin` that takes more than half of the line, as a path may, wraps with the text.
    """
    indent = " " * len(begin)
    if 2 * len(begin) > room:
        begin, text, indent = "", begin + text, "  "
    return textwrap.wrap(
        text, room, initial_indent=begin, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
