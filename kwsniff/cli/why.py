"""``kwsniff why``: what is wrong, who has to act, and the calls that prove it."""

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwsniff.cli.inputs import TABLES, page_file
from kwsniff.cli.layouts import add_layouts_option
from kwsniff.cli.limits import add_limit_option, parse_limits
from kwsniff.cli.standard_streams import say_read
from kwsniff.cli.times import add_time_options, asked_words, refuse_times, since_and_until, zone_of
from kwsniff.cli.why_screen import MOST_CALLS, Errors, Packets, Told, all_lines, screen_lines
from kwsniff.temporary import temporary_folder
from kwsniff.texts import JSON_VERSION, json_text

if TYPE_CHECKING:
    import duckdb

    from kwsniff.findings.display_filters import DisplayFilter
    from kwsniff.findings.evaluate import Finding

_EXAMPLES = """examples:
  kwsniff why capture.pcap                what is wrong in a capture, worst first
  kwsniff why tables/                     the same of a folder of tables, of analyze, live or pipeline
  kwsniff why capture.pcap --since -5m    of its last five minutes
  kwsniff why capture.pcap --all          all of it, with more proof, where a screen is too small
  kwsniff why capture.pcap --json         for scripts
  kwsniff why capture.pcap --html why.html   the same with charts, a file for any browser

exit status: 0 nothing is a problem, 1 a finding is a problem, 2 could not run
"""

_NARROWEST, _WIDEST = 60, 100


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "why",
        help="what is wrong, who has to act, with proof",
        description="Look for causes in captures, or in a folder of tables: worst first, with proof.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="captures, as analyze takes them, or one folder of tables of analyze, live or pipeline",
    )
    parser.add_argument(
        "--port", action="append", default=[], metavar="N[,N...]", help="broker port, may be repeated"
    )
    parser.add_argument(
        "--tls-keylog",
        metavar="FILE",
        action="append",
        help="open TLS with the secrets in FILE (SSLKEYLOGFILE), may be repeated",
    )
    parser.add_argument("--all", action="store_true", help="everything, however many lines it takes")
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the findings, their calls and charts into one HTML file, too; needs bokeh",
    )
    add_time_options(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 1 where a finding is a problem, else 0."""
    from kwsniff.findings.bounds import figures_of
    from kwsniff.findings.display_filters import find_filters
    from kwsniff.findings.evaluate import evaluate
    from kwsniff.findings.report import (
        count_errors,
        describe_basis,
        describe_checks,
        list_not_seen,
        list_slowest,
    )

    # Before the capture is read: an hour of work is not lost for a name that cannot be.
    with page_file(args.html) as file, _opened(args) as (database, files, capture, tables):
        rules = figures_of(files).worth_asking()
        findings = evaluate(database, capture=capture, tables=tables, rules=rules)
        basis = describe_basis(database)
        not_seen = list_not_seen(basis)
        errors = count_errors(database, about=not args.json)
        found = any(each.severity != "info" for each in findings)
        slowest = [] if found or args.json else list_slowest(database)
        most = None if args.json else MOST_CALLS
        filters = find_filters(database, {number for each in findings for number in each.call_ids[:most]})
        if file is not None:
            from kwsniff.report.report import write_report

            named = _captures(capture, args.inputs)
            write_report(
                file,
                database,
                findings,
                basis=basis,
                not_seen=not_seen,
                capture=named,
                zone=zone_of(args),
                upgrade=_upgrade(database),
            )
    if args.json:
        _print_json(basis, findings, filters, errors, not_seen)
    else:
        named = _captures(capture, args.inputs)
        told = Told(
            basis,
            findings,
            errors,
            not_seen,
            _packets(filters),
            named,
            zone_of(args),
            describe_checks(),
            slowest,
        )
        size = shutil.get_terminal_size()
        width = max(_NARROWEST, min(size.columns, _WIDEST))
        for line in all_lines(told, width) if args.all else screen_lines(told, width, size.lines - 1):
            print(line)
    return int(any(each.severity == "problem" for each in findings))


def _upgrade(database: "duckdb.DuckDBPyConnection") -> tuple[str, list[dict[str, Any]]]:
    """The newest release that is known, and what it would make of each client."""
    from kwsniff.findings.upgrade import judge
    from kwsniff.layout.catalog import load_catalog

    newest = [name for name in load_catalog().releases.names if "-" not in name][-1]
    return newest, [asdict(client) for client in judge(database, newest)]


def _packets(filters: Mapping[int, Sequence["DisplayFilter"]]) -> Packets:
    """Each filter as a line says it, with its capture where there are several."""
    several = len({each.capture for some in filters.values() for each in some}) > 1
    return {
        number: [f"{each.filter}, in {each.capture}" if several else each.filter for each in some]
        for number, some in filters.items()
    }


def _captures(capture: str, inputs: Sequence[str]) -> str | None:
    """Captures as a shell takes them; None where tables were read."""
    return shlex.join(inputs) if capture != "CAPTURE" else None


@contextmanager
def _opened(
    args: argparse.Namespace,
) -> Iterator[tuple["duckdb.DuckDBPyConnection", dict[str, list[str]], str, str]]:
    """The tables as a database, their files, and how commands name the capture and the tables, quoted."""
    from kwsniff.cli.analyze import parse_port, progress_bar
    from kwsniff.findings.tables import READ, files_of_tables, is_folder_of_tables, open_folder

    if len(args.inputs) == 1 and is_folder_of_tables(args.inputs[0]):
        refuse_times(args, TABLES)
        place = args.inputs[0]
        yield open_folder(place), files_of_tables(Path(place)), "CAPTURE", shlex.quote(place)
        return
    from kwsniff.analysis.analyze import analyze

    since, until = since_and_until(args)
    # On disk, not in memory: captures may be larger than that.
    with temporary_folder() as folder:
        with progress_bar(shown=sys.stderr.isatty()) as progress:
            summary = analyze(
                args.inputs,
                output=folder,
                ports=[parse_port(port) for text in args.port for port in text.split(",")],
                limits=parse_limits(args.limit),
                tls_keylog=args.tls_keylog,
                tables=READ,
                since=since,
                until=until,
                progress=progress,
            ).summary
        say_read(summary)
        yield (
            open_folder(folder),
            files_of_tables(Path(folder)),
            shlex.join([*args.inputs, *asked_words(args)]),
            "DIR",
        )


def _print_json(
    basis: Mapping[str, Any],
    findings: Sequence["Finding"],
    filters: Mapping[int, Sequence["DisplayFilter"]],
    errors: Errors,
    not_seen: Sequence[str],
) -> None:
    from importlib import metadata

    from kwsniff.findings.display_filters import filters_of
    from kwsniff.findings.evaluate import as_json

    captures = basis["captures"] or []
    found = {
        "version": JSON_VERSION,
        "kwsniff": metadata.version("kwsniff"),
        "captures": captures,
        "findings": [
            as_json(each) | {"display_filters": filters_of(each, filters, captures)} for each in findings
        ],
        **errors,
        "not_seen": list(not_seen),
    }
    print(json_text(found, indent=2))
