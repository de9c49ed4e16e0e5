"""``kwsniff compare``: the differences between GOOD and BAD, largest contribution first."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kwsniff.cli.grids import Grid, fit, shorten
from kwsniff.cli.inputs import HELP, add_input_options, add_page_options, open_inputs, page_file, width, wrap
from kwsniff.cli.options.times import zone_of
from kwsniff.errors import UsageError
from kwsniff.texts import JSON_VERSION, clean, json_text, plural
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

    from kwsniff.findings.call_groups import Side
    from kwsniff.findings.compare import Difference

_EXAMPLES = """examples:
  kwsniff compare monday.pcap tuesday.pcap        differences on Tuesday, largest contribution first
  kwsniff compare good-tables/ bad.pcap           a folder of tables against a capture
  kwsniff compare capture.pcap --at +30s          from 30 s on, against before
  kwsniff compare capture.pcap --at 22:06:53      the same with a time of day; or 2026-11-20T22:06:53
  kwsniff compare good.pcap bad.pcap --html diff.html   an HTML page with the calls, for any browser
  kwsniff compare capture.pcap --slowest          the slowest 5 % of calls against the rest

exit status: 0 done; 1 GOOD or BAD has no calls; 2 error
"""

DONE, NOTHING_TO_COMPARE = 0, 1

_ROW = ("subject_kind", "subject", "what", "good", "bad", "ratio", "call_ids")
_SLOWEST = 0.95
_MOST = 20
_LONGEST = 32
_ELSEWHERE = "GOOD and BAD have different capture points: do not compare network and broker times."

Sides = tuple[tuple["duckdb.DuckDBPyConnection", "Side"], tuple["duckdb.DuckDBPyConnection", "Side"]]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="compare good and bad traffic",
        description="Compare calls by client, API, topic, partition, broker, version, acks, codec and "
        "software: rates, errors, and parts of their time.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=f"GOOD and BAD, or one: {HELP}")
    parser.add_argument(
        "--at", metavar="TIME", help="one input: after a time, or +30s from its start, against before"
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
    from kwsniff.findings.compare import compare, place

    with ExitStack() as stack:
        file = stack.enter_context(page_file(args))  # before captures are read
        inputs = [stack.enter_context(open_inputs([each], args)) for each in args.inputs]
        databases = [each.database for each in inputs]
        good, bad = _sides(args, databases)
        counts = [_count(*each) for each in (good, bad)]
        differences = compare(good, bad) if all(counts) else []
        seen = [place(database) for database, _ in (good, bad)]
        notes = [_ELSEWHERE] if None not in seen and seen[0] != seen[1] else []
        if file is not None:
            from kwsniff.report.comparison import write_comparison

            named = None if inputs[-1].capture == "CAPTURE" else inputs[-1].capture
            write_comparison(
                file, bad[0], differences, counts=counts, capture=named, notes=notes, zone=zone_of(args)
            )
    if args.json:
        rows = [{name: getattr(each, name) for name in _ROW} for each in differences]
        print(json_text({"version": JSON_VERSION, "differences": rows}, indent=2))
    else:
        for line in _lines(differences, counts, width()):
            print(line)
        for note in notes:
            print("\n".join(["", *wrap(note, width())]))
    return DONE if all(counts) and all(each.read for each in inputs) else NOTHING_TO_COMPARE


def _sides(args: argparse.Namespace, databases: Sequence["duckdb.DuckDBPyConnection"]) -> Sides:
    from kwsniff.findings.call_groups import Side, collect
    from kwsniff.findings.evaluate import fetch

    for database in databases:
        collect(database)
    spans = [fetch(database, "select first_time, last_time, seconds from span")[0] for database in databases]
    if args.at is not None:
        first, last = spans[0]["first_time"], spans[0]["last_time"]
        moment = None if first is None else _moment(args.at, first, last, zone_of(args))
        if moment is None or not first < moment < last:
            there = "no times" if first is None else zone_of(args).between(first, last)
            raise UsageError(f"--at {args.at} is outside the captured time range ({there})")
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


def _moment(text: str, first: datetime, last: datetime, zone: Zone) -> datetime:
    """The time of --at in microseconds, the precision of times in these tables."""
    from kwsniff.sources.times import parse_moment

    epoch, step = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    begin, end = ((time - epoch) // step * 1000 for time in (first, last))
    return epoch + parse_moment(text, "--at", zone).resolve(begin, end) // 1000 * step


def _count(database: "duckdb.DuckDBPyConnection", side: "Side") -> int:
    from kwsniff.findings.evaluate import fetch

    return int(fetch(database, f"select count(*) as calls from fact where {side.where}")[0]["calls"])  # noqa: S608


def _lines(differences: Sequence["Difference"], counts: Sequence[int], room: int) -> Iterator[str]:
    stands = f"{plural(counts[0], 'call')} in GOOD, {counts[1]:,} in BAD"
    if not all(counts):
        yield from wrap(f"Nothing to compare: {stands}.", room)
        return
    if not differences:
        yield from wrap(f"No significant difference: {stands}.", room)
        return
    yield from wrap(f"{plural(len(differences), 'difference')}, largest contribution first: {stands}.", room)
    yield ""
    rows = [
        (
            shorten(clean(f"{each.subject_kind} {each.subject}"), _LONGEST),
            each.what,
            _figure(each.good),
            _figure(each.bad),
            _figure(each.ratio),
            f"{each.share:.0%}",
            _interval(each.good_interval),
            _interval(each.bad_interval),
        )
        for each in differences[:_MOST]
    ]
    names = ("subject", "measure", "good", "bad", "ratio", "contribution", "good, 99 %", "bad, 99 %")
    order = ("subject", "measure", "good", "bad", "contribution", "bad, 99 %", "good, 99 %", "ratio")
    yield from fit(Grid("", names, rows, order), room).lines
    if len(differences) > _MOST:
        yield f"and {len(differences) - _MOST} more; --json has all"
    first = differences[0]
    yield ""
    yield from wrap(
        f"Calls of the first difference: {', '.join(map(str, first.call_ids[:6])) or 'none to show'}.", room
    )
    yield from wrap(
        "_ms: mean per call; longest: one call. errors: share of calls. "
        "contribution: share of total latency, or of calls, in BAD.",
        room,
    )


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _interval(bounds: tuple[float, float]) -> str:
    # Only means have bounds.
    return "" if bounds[0] == bounds[1] else f"{_figure(bounds[0])} to {_figure(bounds[1])}"
