"""The output of ``kwsniff why``, worst finding first: what fits the screen, or everything."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwsniff.cli.error_tables import failure_grids, without_routine
from kwsniff.cli.record_tables import readers_grid, rebalances_grid
from kwsniff.cli.text_tables import Grid, fit, shorten
from kwsniff.tables.servers import name_known
from kwsniff.texts import clean, display_filter, in_bytes, in_percent, in_time, plural
from kwsniff.zones import UTC_ZONE, Zone

if TYPE_CHECKING:
    from kwsniff.findings.finding import Finding

MOST_CALLS = 4
_MOST_SLOWEST = 3
_MOST_ERRORS = 5
_MOST_TOLD = 4
_LEAST_LINES = 23
_MOST_ROWS = 6
"""Limit for a sentence or command on a screen: names can be 32 kB long, and lists longer."""
_SIZES = (
    (MOST_CALLS, _MOST_ROWS, True),
    (2, _MOST_ROWS, True),
    (1, _MOST_ROWS, True),
    (1, _MOST_ROWS, False),
    (1, 2, False),
)
"""Sizes of a finding, largest first: calls with their packets, rows of its sentence, command or not."""
_MORE = "--all shows more, --json everything."
_REST = "Other findings:"

Errors = Mapping[str, Sequence[Mapping[str, Any]]]
Packets = Mapping[int, Sequence[str]]
"""Number of a call -> display filters of its packets, one for each run that has it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to show. `captures`: quoted for a shell; None if tables were read. `accounts`: `account` and
    `connections` of finding_calls.py, None where there was no memory to add them up."""

    basis: Mapping[str, Any]
    findings: Sequence["Finding"]
    errors: Errors
    not_seen: Sequence[str]
    packets: Packets
    captures: str | None
    zone: Zone = UTC_ZONE
    checked: str = ""
    """The sentence on what was checked, shown if nothing was found; and the slowest calls."""
    slowest: Sequence[Mapping[str, Any]] = ()
    readers: Sequence[Mapping[str, Any]] = ()
    """How long records took to them."""
    rebalances: Sequence[Mapping[str, Any]] = ()
    """What they cost, one each."""
    accounts: Mapping[str, Any] = field(default_factory=dict)


def screen_lines(answer: Answer, width: int, height: int) -> list[str]:
    """At most `height` rows of the terminal, or 23 on lower ones: the first finding with its proof, as many
    others as fit, and the limits of the capture."""
    room = max(height, _LEAST_LINES)
    head = list(_headline(answer, width))
    whole = list(all_lines(answer, width))
    if _height(whole, width) <= room:
        return whole
    last = ["", *_list_unseen(answer.not_seen[:1], width), _MORE]
    room -= _height([*head, *last], width)
    body, left = _fit(answer, width, room)
    room -= _height(body, width)
    # Each part gets the largest size that fits.
    clients, brokers = failure_grids(without_routine(answer.errors))
    for sizes in (
        [_errors(clients, width, most) for most in (_MOST_ERRORS, 2, 1)],
        [_notes(answer, width)],
        [_slowest(answer, width, most) for most in (_MOST_SLOWEST, 2, 1)],
        [_records([readers_grid(answer.readers)], width)],
        [_records([rebalances_grid(answer.rebalances)], width)],
        [_errors(brokers, width, most) for most in (_MOST_ERRORS, 2, 1)],
    ):
        lines = next((lines for each in sizes if _height(lines := list(each), width) <= room), [])
        if not left:
            body += lines
            room -= _height(lines, width)
    return [*head, *body, *last]


def _height(lines: Sequence[str], width: int) -> int:
    """Rows of the terminal. A line longer than a row, such as a command that stays whole, takes several."""
    return sum(max(1, -(-len(line) // width)) for line in lines)


def _fit(answer: Answer, width: int, room: int) -> tuple[list[str], bool]:
    """Findings in at most that many lines, in full or one line per kind; and whether some are left out."""
    bad = [finding for finding in answer.findings if finding.severity != "info"]
    body: list[str] = []
    firsts = _firsts(_causes(bad))
    number = 0
    for number, finding in enumerate(firsts):
        rest = _besides(bad, firsts[: number + 1])
        short = ["", _REST, *_in_short(rest, width)] if rest else []
        follow = _consequences(bad, finding)
        also = _wrap(", ".join(_kinds(follow)), width, "    Consequences:  ") if follow else ()
        for calls, rows, see in _SIZES:
            folder = _folder([finding], answer.captures) if see else []
            lines = ["", *_paragraph(finding, answer, width, calls, rows, see=see), *also, *folder]
            if _height([*body, *lines, *short], width) <= room:
                break
        else:
            if body:
                break
            short = short[: max(room - _height(lines, width), 0)]
        body += lines
        if _height([*body, *short], width) >= room or number == len(firsts) - 1:
            return [*body, *short], bool(rest)
    rest = _besides(bad, firsts[:number])
    return [*body, "", _REST, *_in_short(rest, width)] if rest else body, bool(rest)


def all_lines(answer: Answer, width: int) -> Iterator[str]:
    """Everything, whatever its length."""
    yield from _headline(answer, width)
    bad = [finding for finding in answer.findings if finding.severity != "info"]
    firsts = _firsts(_causes(bad))[:_MOST_TOLD]
    shown = [each for cause in firsts for each in (cause, *_firsts(_consequences(bad, cause)))]
    rest = [finding for finding in bad if all(finding is not one for one in shown)]
    for finding in shown:
        yield ""
        yield from _paragraph(finding, answer, width, MOST_CALLS)
    if rest:
        yield ""
        yield "Other findings (details: --json):"
        yield from _in_short(rest, width)
    yield from _folder(shown, answer.captures)
    yield from _notes(answer, width)
    for grid in failure_grids(without_routine(answer.errors)):
        yield from _errors(grid, width, _MOST_ERRORS)
    yield from _slowest(answer, width)
    yield from _records((readers_grid(answer.readers), rebalances_grid(answer.rebalances)), width)
    yield ""
    yield from _list_unseen(answer.not_seen, width)


def _firsts(findings: Sequence["Finding"]) -> list["Finding"]:
    """The first finding of each kind."""
    firsts = {finding.finding: finding for finding in reversed(findings)}
    return [finding for finding in findings if firsts[finding.finding] is finding]


def _causes(findings: Sequence["Finding"]) -> list["Finding"]:
    """Findings without a cause among the findings."""
    return [finding for finding in findings if finding.cause is None]


def _consequences(findings: Sequence["Finding"], cause: "Finding") -> list["Finding"]:
    """Direct and indirect consequences of a finding."""
    found = []
    for finding in findings:
        behind = finding.cause
        while behind is not None and behind is not cause:
            behind = behind.cause
        if behind is cause:
            found.append(finding)
    return found


def _besides(findings: Sequence["Finding"], shown: Sequence["Finding"]) -> list["Finding"]:
    """Findings that are neither in `shown` nor a consequence of one that is."""
    known = [each for one in shown for each in (one, *_consequences(findings, one))]
    return [finding for finding in findings if all(finding is not each for each in known)]


def _folder(findings: Sequence["Finding"], captures: str | None) -> list[str]:
    if captures is None or not any(" DIR " in finding.command for finding in findings):
        return []
    return [
        "",
        f"The commands above read tables from DIR. To write them: kwsniff why {clean(captures)} --keep DIR",
    ]


def _notes(answer: Answer, width: int) -> Iterator[str]:
    notes = [finding for finding in answer.findings if finding.severity == "info"]
    if notes:
        yield ""
        yield "Notes:"
        for finding in notes:
            yield from _wrap(finding.text, width, "- ")


def _list_unseen(sentences: Sequence[str], width: int) -> Iterator[str]:
    yield "Limits of this capture:"
    for sentence in sentences:
        yield from _wrap(sentence, width, "- ")


def _in_short(findings: Sequence["Finding"], width: int) -> Iterator[str]:
    """One line per kind of finding, with its subjects."""
    for (severity, name), same in _by_kind(findings).items():
        causes = list(dict.fromkeys(each.explained_by for each in same if each.explained_by))
        follows = f" (follows from {', '.join(causes)})" if causes else ""
        yield from _wrap(f"{severity.upper()} {name}: {_subjects(same)}{follows}", width, "- ")


def _kinds(findings: Sequence["Finding"]) -> Iterator[str]:
    for (severity, name), same in _by_kind(findings).items():
        yield f"{severity.upper()} {name} ({_subjects(same)})"


def _by_kind(findings: Sequence["Finding"]) -> dict[tuple[str, str], list["Finding"]]:
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.severity, finding.finding), []).append(finding)
    return kinds


def _subjects(findings: Sequence["Finding"]) -> str:
    return _some(list(dict.fromkeys(clean(finding.subject) for finding in findings)))


def _errors(grid: Grid, width: int, most: int) -> Iterator[str]:
    """The clients that received errors, or the brokers that sent them."""
    if grid.rows:
        more = f" (first {most} of {len(grid.rows)})" if len(grid.rows) > most else ""
        yield ""
        yield from _wrap(f"{grid.title}{more}:", width, "")
        yield from fit(grid._replace(rows=grid.rows[:most]), width).lines


def _slowest(answer: Answer, width: int, most: int = _MOST_SLOWEST) -> Iterator[str]:
    """The slowest calls, grouped by client, API and topic, and the packets of the longest ones."""
    if answer.slowest:
        cells = [
            (
                clean(each["client"]),
                clean(each["api"]),
                clean(each["topic"]),
                f"{each['calls']:,}",
                in_time(each["mean_ns"]),
                in_time(each["max_ns"]),
                each["mostly"],
                str(each["call_id"]),
            )
            for each in answer.slowest[:most]
        ]
        names = ("client", "API", "topic", "calls", "mean", "max", "mostly", "longest call")
        order = ("client", "API", "max", "topic", "mean", "mostly", "longest call", "calls")
        yield ""
        yield from _wrap("Slowest calls, without deliberate waits (for data, members, quotas):", width, "")
        yield from fit(Grid("", names, cells, order), width).lines
        for each in answer.slowest[:most]:
            for said in answer.packets.get(each["call_id"], ()):
                yield f"  {each['call_id']}: {clean(said)}"


def _records(grids: Sequence[Grid], width: int) -> Iterator[str]:
    """Lists about records, with their titles."""
    for grid in grids:
        if grid.rows:
            yield ""
            yield from _wrap(f"{grid.title}:", width, "")
            yield from fit(grid, width).lines


def _headline(answer: Answer, width: int) -> Iterator[str]:
    basis = answer.basis
    counts = [
        plural(number, word)
        for word in ("problem", "warning")
        if (number := sum(each.severity == word for each in answer.findings))
    ]
    long = "" if basis["seconds"] is None else f" in {basis['seconds']:.1f} s"
    scope = (
        f"{plural(basis['calls'], 'call')} from {plural(basis['clients'], 'client')} "
        f"to {plural(basis['brokers'], 'broker')}{name_known(basis['servers'])}{long}, "
        f"{in_bytes(basis['payload_bytes'])}"
    )
    yield from _counts_line(answer, width, counts, scope)
    for name in ("account", "connections"):
        if account := answer.accounts.get(name):
            yield from _account(account, "call" if name == "account" else "connection", width)


def _account(account: Mapping[str, Any], what: str, width: int) -> Iterator[str]:
    """How many calls, or connections, are fine, routine, explained and unexplained; of connections only if
    one of them is not fine."""
    total, explained, left = account[f"{what}s"], account["explained"], account["unexplained"]
    if not total or (what == "connection" and not (explained or left)):
        return
    parts = [f"{account['fine']:,} fine"]
    if routine := sum(account["routine"].values()):
        parts.append(f"{routine:,} routine")
    if explained:
        most = sorted(explained, key=lambda name: -explained[name])
        parts.append(f"{sum(explained.values()):,} explained by {_some(most, 3)}")
    if left:
        parts.append(f"{left:,} harmed without an explanation")
    yield from _wrap(f"{plural(total, what)}: {', '.join(parts)}.", width, "")


def _counts_line(answer: Answer, width: int, counts: Sequence[str], scope: str) -> Iterator[str]:
    basis = answer.basis
    if counts and basis["calls"]:
        yield from _wrap(f"{' and '.join(counts)} in {scope}.", width, "")
    elif counts:
        yield from _wrap(f"{' and '.join(counts)}; the capture has no Kafka calls.", width, "")
    elif basis["calls"]:
        harmed = sum(each["unexplained"] for each in answer.accounts.values() if each)
        found = "No rule explains the harm" if harmed else "No finding"
        yield from _wrap(f"{found} in {scope}.", width, "")
        yield from _wrap(answer.checked, width, "")
        errors = sum(each["count"] for each in without_routine(answer.errors)["errors_by_client"])
        if errors:
            received = f"{plural(errors, 'error')} that clients received"
            routine = f"{received} {'is' if errors == 1 else 'are'} routine: see below."
            yield from _wrap(f"No rule explains {received}: see below." if harmed else routine, width, "")
    else:
        yield from _wrap("No Kafka calls found.", width, "")


def _paragraph(
    finding: "Finding", answer: Answer, width: int, calls: int, rows: int | None = None, *, see: bool = True
) -> Iterator[str]:
    """A finding with its proof. `rows`: limit for its sentence and its command; `see`: with the command."""
    share = "" if not finding.time_share else f"  {in_percent(finding.time_share)} of total call latency."
    cause = f", follows from {finding.explained_by}" if finding.explained_by else ""
    yield from _wrap(
        f"{finding.severity.upper()} {finding.finding} ({finding.confidence}) owner: {finding.blames}{cause}",
        width,
        "",
    )
    if finding.first_time is not None or finding.last_time is not None:
        yield f"  When: {answer.zone.between(finding.first_time, finding.last_time)}"
    lines = _wrap(clean(finding.text) + share, width, "  ", whole=rows is None)
    yield from lines[:rows]
    if rows is not None and len(lines) > rows:
        yield "    ... (full text: --all)"
    yield from _wrap(clean(finding.advice), width, "  Do: ")
    if finding.call_ids:
        yield from _wrap(f"{_noun(finding.call_ids, 'call')} {_some(finding.call_ids)}", width, "  Proof: ")
        for number in finding.call_ids[:calls]:
            for said in answer.packets.get(number, ()):
                yield f"    {number}: {clean(said)}"
    elif finding.frames:
        yield from _wrap(f"{_noun(finding.frames, 'packet')} {_some(finding.frames)}", width, "  Proof: ")
        yield f"    {display_filter((each, each) for each in finding.frames[:MOST_CALLS])}"
    command = f"  See: {clean(finding.command)}"
    if see:
        long = rows is not None and _height([command], width) > rows
        yield "  See: a long command; --all shows it" if long else command


def _noun(numbers: Sequence[int], word: str) -> str:
    return word if len(numbers) == 1 else f"{word}s"


def _some(numbers: Sequence[int] | Sequence[str], most: int = MOST_CALLS) -> str:
    shown = ", ".join(str(number) for number in numbers[:most])
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"


def _wrap(text: str, width: int, begin: str, *, whole: bool = False) -> list[str]:
    """A word longer than a line is shortened in its middle, unless `whole`."""
    cut = text if whole else " ".join(shorten(word, width - len(begin)) for word in text.split())
    return textwrap.wrap(
        cut, width, initial_indent=begin, subsequent_indent=" " * len(begin),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
