"""``kwsniff why``: problems, their owners, and the calls that prove them."""

import argparse
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kwsniff.cli.colors import Styles, line_printer
from kwsniff.cli.inputs import HELP, add_input_options, add_page_options, open_inputs, page_file, width
from kwsniff.cli.options.filters import add_where
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.places import add_place_option, parse_places, with_placed
from kwsniff.cli.options.times import zone_of
from kwsniff.cli.why_lines import MOST_CALLS, Answer, Packets, all_lines, screen_lines
from kwsniff.texts import JSON_VERSION, json_text

if TYPE_CHECKING:
    import duckdb

    from kwsniff.findings.display_filters import DisplayFilter
    from kwsniff.findings.finding import Finding

_STYLES: Final[Styles] = (
    (re.compile(r"\bPROBLEM \w+"), "bold red"),
    (re.compile(r"\bWARNING \w+"), "bold yellow"),
    (re.compile(r"^  (When|Do|Proof|See):"), "bold"),
)

_EXAMPLES = """examples:
  kwsniff why capture.pcap                problems in a capture, worst first
  kwsniff why tables/                     the same for a folder of tables from analyze, live or pipeline
  kwsniff why capture.pcap --since -5m    its last five minutes
  kwsniff why capture.pcap --where "client_id = 'shop'"    as if there were no other calls
  kwsniff why capture.pcap --all          everything, with more proof than fits on a screen
  kwsniff why capture.pcap --keep out/    the same, with tables for the commands that it prints
  kwsniff why capture.pcap --json         JSON for scripts
  kwsniff why capture.pcap --html why.html   an HTML page with charts, for any browser

exit status: 0 no problem found; 1 a problem found, or nothing to read; 2 error
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "why",
        help="find problems and their owners, with proof",
        description="Find the causes of problems in captures or in a folder of tables: worst first, with "
        "proof.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help=HELP)
    add_place_option(parser)
    parser.add_argument("--all", action="store_true", help="show everything, not only what fits the screen")
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the tables of the captures there, for the commands that it prints"
    )
    add_page_options(parser, "the findings, their calls and charts")
    add_input_options(parser)
    add_layouts_option(parser)
    add_where(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 1 if a finding is a problem or there was nothing to read, else 0."""
    from kwsniff.findings.context import QUERIES
    from kwsniff.findings.evaluate import evaluate, prepare_views
    from kwsniff.findings.finding_calls import add_up
    from kwsniff.findings.prefilter.figures import figures_of
    from kwsniff.sources.paths import local_path

    inputs = with_placed(args.inputs, parse_places(args.place), verb="why", argument="INPUT")
    args.keep = args.keep and local_path(args.keep)
    # Checked before the capture is read: a bad name must not cost an hour of work.
    with (
        page_file(args) as file,
        open_inputs(args.inputs, args, every_view=file is not None) as opened,
    ):
        database, files, capture, tables, read = opened
        rules = figures_of(files).worth_asking()
        prepare_views(database, rules, QUERIES)
        findings = evaluate(database, capture=capture, tables=tables, rules=rules)
        accounts = add_up(database, findings)
        answer = _prepare(
            database, findings, accounts, None if capture == "CAPTURE" else shlex.join(inputs), args
        )
        if file is not None:
            from kwsniff.report.report import write_report

            write_report(
                file,
                database,
                findings,
                basis=answer.basis,
                not_seen=answer.not_seen,
                accounts=accounts,
                capture=answer.captures,
                upgrade=_upgrade(database),
                zone=answer.zone,
            )
        if args.json:
            _print_json(database, answer)
    if not args.json:
        height = shutil.get_terminal_size().lines - 1
        line_printer(_STYLES)(
            all_lines(answer, width()) if args.all else screen_lines(answer, width(), height)
        )
    return int(not read or any(each.severity == "problem" for each in findings))


def _prepare(
    database: "duckdb.DuckDBPyConnection",
    findings: Sequence["Finding"],
    accounts: Mapping[str, Any],
    captures: str | None,
    args: argparse.Namespace,
) -> Answer:
    from kwsniff.findings.context import (
        count_errors,
        describe_basis,
        describe_checks,
        list_not_seen,
        list_readers,
        list_rebalances,
        list_slowest,
    )
    from kwsniff.findings.display_filters import find_filters

    basis = describe_basis(database)
    shown = not args.json
    found = any(each.severity != "info" for each in findings)
    proofs = {number for each in findings for number in each.call_ids[:MOST_CALLS]} if shown else set()
    slowest = list_slowest(database) if shown and not found else ()
    proofs.update(each["call_id"] for each in slowest)
    return Answer(
        basis=basis,
        findings=findings,
        accounts=accounts,
        errors=count_errors(database, about=shown),
        not_seen=list_not_seen(basis),
        packets=_packets(find_filters(database, proofs)),
        captures=captures,
        zone=zone_of(args),
        checked=describe_checks(),
        slowest=slowest,
        readers=list_readers(database),
        rebalances=list_rebalances(database),
    )


def _upgrade(database: "duckdb.DuckDBPyConnection") -> tuple[str, list[dict[str, Any]]]:
    """The newest known release, and the verdict on each client for it."""
    from kwsniff.findings.upgrade import judge
    from kwsniff.layout.catalog import load_catalog

    newest = [name for name in load_catalog().releases.names if "-" not in name][-1]
    return newest, [asdict(client) for client in judge(database, newest)]


def _packets(filters: Mapping[int, Sequence["DisplayFilter"]]) -> Packets:
    """One line per filter, with the name of its capture if there are several captures."""
    several = len({each.capture for some in filters.values() for each in some}) > 1
    return {
        number: [f"{each.filter}, in {each.capture}" if several else each.filter for each in some]
        for number, some in filters.items()
    }


def _print_json(database: "duckdb.DuckDBPyConnection", answer: Answer) -> None:
    from importlib import metadata

    from kwsniff.findings.display_filters import filters_of, find_filters
    from kwsniff.findings.evaluate import as_json

    captures = answer.basis["captures"] or []
    filters = find_filters(database, {number for each in answer.findings for number in each.call_ids})
    found = {
        "version": JSON_VERSION,
        "kwsniff": metadata.version("kwsniff"),
        "captures": captures,
        "findings": [
            as_json(each) | {"display_filters": filters_of(each, filters, captures)}
            for each in answer.findings
        ],
        **answer.accounts,
        **answer.errors,
        "deliveries": list(answer.readers),
        "rebalances": list(answer.rebalances),
        "not_seen": list(answer.not_seen),
    }
    print(json_text(found, indent=2))
