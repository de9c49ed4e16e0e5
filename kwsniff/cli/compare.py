"""``kwsniff compare``: the differences between GOOD and BAD, largest contribution first."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kwsniff.cli.inputs import HELP, add_input_options, add_page_options, open_inputs, page_file, width, wrap
from kwsniff.cli.options.times import zone_of
from kwsniff.errors import UsageError
from kwsniff.texts import JSON_VERSION, clean, json_text
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

    from kwsniff.cli.compare_lines import SideAnswer
    from kwsniff.cli.inputs import Opened
    from kwsniff.findings.call_groups import Side
    from kwsniff.findings.compare import Difference
    from kwsniff.findings.display_filters import DisplayFilter
    from kwsniff.findings.finding import Finding

_EXAMPLES = """examples:
  kwsniff compare monday.pcap tuesday.pcap        differences on Tuesday, largest contribution first
  kwsniff compare good-tables/ bad.pcap           a folder of tables against a capture
  kwsniff compare capture.pcap --at +30s          after the first 30 s, against before
  kwsniff compare capture.pcap --at 22:06:53      the same with a time of day; or 2026-11-20T22:06:53
  kwsniff compare good.pcap bad.pcap --html diff.html   an HTML page with the calls, for any browser
  kwsniff compare capture.pcap --slowest          the slowest 5 % of calls against the rest

exit status: 0 done; 1 GOOD or BAD has no calls; 2 error
"""

DONE, NOTHING_TO_COMPARE = 0, 1

_ROW = ("subject_kind", "subject", "what", "good", "bad", "ratio", "call_ids")
_SLOWEST = 0.95
_ELSEWHERE = "GOOD and BAD have different capture points: do not compare network and broker times."

Sides = tuple[tuple["duckdb.DuckDBPyConnection", "Side"], tuple["duckdb.DuckDBPyConnection", "Side"]]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="compare good and bad traffic",
        description="Compare calls by client, API, topic, partition, broker, version, acks, codec and "
        "software: rates, errors, and latency by part.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help=f"GOOD and BAD, or one for --at or --slowest: {HELP}"
    )
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="one input: its calls after TIME (or +30s from its start) against those before",
    )
    parser.add_argument(
        "--slowest", action="store_true", help="one input: the slowest 5 %% of calls against the rest"
    )
    parser.add_argument("--json", action="store_true", help="print the differences as JSON")
    add_page_options(parser, "the differences and the calls behind them")
    add_input_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 0 with or without differences; 1 if GOOD or BAD has no calls."""
    halves = args.at is not None or args.slowest
    if args.at is not None and args.slowest:
        raise UsageError("give --at or --slowest, not both")
    if len(args.inputs) != (1 if halves else 2):
        raise UsageError("give GOOD and BAD, or one input with --at TIME or --slowest")
    if args.at is not None:
        from kwsniff.sources.times import parse_moment

        parse_moment(args.at, "--at", zone_of(args))  # before captures are read
    from kwsniff.cli.compare_lines import compare_lines, side_json
    from kwsniff.findings.compare import compare, place
    from kwsniff.findings.display_filters import find_filters

    with ExitStack() as stack:
        file = stack.enter_context(page_file(args))  # before captures are read
        inputs = [stack.enter_context(open_inputs([each], args)) for each in args.inputs]
        databases = [each.database for each in inputs]
        moment = None if args.at is None else _find_moment(args, inputs[0].database)
        good, bad = _sides(args, databases, moment)
        counts = [_count(*each) for each in (good, bad)]
        differences = compare(good, bad) if all(counts) else []
        answers = [*_answers(args, inputs, counts, moment)]
        seen = [place(database) for database, _ in (good, bad)]
        notes = [_ELSEWHERE] if None not in seen and seen[0] != seen[1] else []
        if file is not None:
            from kwsniff.report.comparison import write_comparison

            named = None if inputs[-1].capture == "CAPTURE" else inputs[-1].capture
            write_comparison(
                file, bad[0], differences, counts=counts, capture=named, notes=notes, zone=zone_of(args)
            )
        filters = find_filters(bad[0], {number for each in differences for number in each.call_ids})
    if args.json:
        rows = [_row(each, filters) for each in differences]
        sides = {name: side_json(each) for name, each in zip(("good", "bad"), answers, strict=True)}
        print(json_text({"version": JSON_VERSION, "differences": rows} | sides, indent=2))
    else:
        for line in compare_lines(differences, answers, width(), filters):
            print(line)
        for note in notes:
            print("\n".join(["", *wrap(note, width())]))
    return DONE if all(counts) and all(each.read for each in inputs) else NOTHING_TO_COMPARE


def _row(difference: "Difference", filters: Mapping[int, Sequence["DisplayFilter"]]) -> dict[str, Any]:
    shown = [asdict(found) for number in difference.call_ids for found in filters.get(number, ())]
    return {name: getattr(difference, name) for name in _ROW} | {"display_filters": shown}


def _find_moment(args: argparse.Namespace, database: "duckdb.DuckDBPyConnection") -> datetime:
    """The time of --at. Raises UsageError if it is outside the capture."""
    from kwsniff.findings.evaluate import fetch

    (span,) = fetch(database, "select first_time, last_time from span")
    first, last = span["first_time"], span["last_time"]
    moment = None if first is None else _moment(args.at, first, last, zone_of(args))
    if moment is None or not first < moment < last:
        there = "no times" if first is None else zone_of(args).between(first, last)
        raise UsageError(f"--at {args.at} is outside the captured time range ({there})")
    return moment


def _sides(
    args: argparse.Namespace, databases: Sequence["duckdb.DuckDBPyConnection"], moment: datetime | None
) -> Sides:
    from kwsniff.findings.call_groups import Side, collect
    from kwsniff.findings.evaluate import fetch

    for database in databases:
        collect(database)
    spans = [fetch(database, "select first_time, last_time, seconds from span")[0] for database in databases]
    if moment is not None:
        first, last = spans[0]["first_time"], spans[0]["last_time"]
        said = f"timestamptz '{moment.isoformat()}'"
        # Calls in flight at that time belong to BAD: they may be the first to show the problem.
        before = Side(f"end_time < {said}", (moment - first).total_seconds())
        after = Side(f"end_time >= {said}", (last - moment).total_seconds())
        return (databases[0], before), (databases[0], after)
    if args.slowest:
        (row,) = fetch(databases[0], f"select quantile_cont(counted, {_SLOWEST}) as bound from fact")  # noqa: S608
        bound = row["bound"] or 0
        rest, slow = (Side(f"counted {sign} {bound}", slowest=True) for sign in ("<=", ">"))
        return (databases[0], rest), (databases[0], slow)
    good, bad = (
        (database, Side(seconds=span["seconds"])) for database, span in zip(databases, spans, strict=True)
    )
    return good, bad


def _answers(
    args: argparse.Namespace, inputs: Sequence["Opened"], counts: Sequence[int], moment: datetime | None
) -> Iterator["SideAnswer"]:
    """GOOD and BAD: which calls they are, and what `kwsniff why` finds among them."""
    from kwsniff.cli.compare_lines import SideAnswer

    names = [clean(name) for name in args.inputs]
    if args.slowest:
        for name, calls, which in zip(("GOOD", "BAD"), counts, ("the rest", "the slowest 5 %"), strict=True):
            yield SideAnswer(f"{name}, {which} of {names[0]}", calls)
    elif moment is not None:
        found, _ = _judge(inputs[0])
        before, after = ([each for each in found if side in _spans(each, moment)] for side in (0, 1))
        yield SideAnswer(f"GOOD, {names[0]} before {clean(args.at)}", counts[0], before)
        yield SideAnswer(f"BAD, {names[0]} from {clean(args.at)} on", counts[1], after)
    else:
        for name, capture, calls, each in zip(("GOOD", "BAD"), names, counts, inputs, strict=True):
            yield SideAnswer(f"{name}, {capture}", calls, *_judge(each))


def _spans(finding: "Finding", moment: datetime) -> tuple[int, ...]:
    """0: before that time; 1: after. Both, if a tenth of it or more is on each side, or if it has no time."""
    if finding.first_time is None or finding.last_time is None:
        return 0, 1
    tenth = (finding.last_time - finding.first_time) / 10
    sides = finding.first_time + tenth < moment, finding.last_time - tenth >= moment
    return tuple(side for side, holds in enumerate(sides) if holds) or (int(finding.first_time >= moment),)


def _judge(opened: "Opened") -> tuple[list["Finding"], int | None]:
    """Problems and warnings, and how many calls are harmed; None where memory lacks."""
    from kwsniff.findings.evaluate import evaluate
    from kwsniff.findings.finding_calls import add_up
    from kwsniff.findings.prefilter.figures import figures_of

    rules = figures_of(opened.files).worth_asking()
    findings = evaluate(opened.database, capture=opened.capture, tables=opened.tables, rules=rules)
    account = add_up(opened.database, findings)["account"]
    harmed = None if account is None else sum(account["explained"].values()) + account["unexplained"]
    return [each for each in findings if each.severity != "info"], harmed


def _moment(text: str, first: datetime, last: datetime, zone: Zone) -> datetime:
    """The time of --at in microseconds, the precision of times in these tables."""
    from kwsniff.sources.times import parse_moment

    epoch, step = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    begin, end = ((time - epoch) // step * 1000 for time in (first, last))
    return epoch + parse_moment(text, "--at", zone).resolve(begin, end) // 1000 * step


def _count(database: "duckdb.DuckDBPyConnection", side: "Side") -> int:
    from kwsniff.findings.evaluate import fetch

    return int(fetch(database, f"select count(*) as calls from fact where {side.where}")[0]["calls"])  # noqa: S608
