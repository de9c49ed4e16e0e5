"""What ``kwsniff why`` shows: as much as fits a screen, worst first, or all of it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kwsniff.cli.failures import failure_grids, without_routine
from kwsniff.cli.grids import fitted, shortened
from kwsniff.texts import clean, display_filter, in_bytes, plural

if TYPE_CHECKING:
    from kwsniff.findings.evaluate import Finding

MOST_CALLS = 4
_MOST_ERRORS = 5
_MOST_TOLD = 4
_LEAST_LINES = 23
_MOST_ROWS = 6
"""Of a sentence, or a command, where there is a screen to fill: names may be 32 kB long, lists longer."""
_MORE = "More of it: --all; everything: --json"

Errors = Mapping[str, Sequence[Mapping[str, Any]]]
Packets = Mapping[int, Sequence[str]]
"""Number of a call -> display filters of its packets, one for each run that has it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to say. `captures`: as a shell takes them; None where tables were read."""

    basis: Mapping[str, Any]
    findings: Sequence["Finding"]
    errors: Errors
    not_seen: Sequence[str]
    packets: Packets
    captures: str | None


def screen_lines(told: Told, width: int, height: int) -> list[str]:
    """At most `height` rows of the terminal, or 23 on lower ones: the first finding with its proof, others as
    far as there is room, and what the capture cannot tell."""
    room = max(height, _LEAST_LINES)
    head = list(_headline(told, width))
    whole = list(all_lines(told, width))
    if _height(whole, width) <= room:
        return whole
    last = ["", *_seen(told.not_seen[:1], width), _MORE]
    room -= _height([*head, *last], width)
    body, left = _fitted(told, width, room)
    room -= _height(body, width)
    for more in (_errors(told.errors, width, most=2), _notes(told, width)):
        lines = list(more)
        if not left and 0 < _height(lines, width) <= room:
            body += lines
            room -= _height(lines, width)
    return [*head, *body, *last]


def _height(lines: Sequence[str], width: int) -> int:
    """Rows of the terminal: what is longer than a row, a command that has to stay whole, takes several."""
    return sum(max(1, -(-len(line) // width)) for line in lines)


def _fitted(told: Told, width: int, room: int) -> tuple[list[str], bool]:
    """Findings in so many lines, at length or a line for each kind; and whether some are left out."""
    bad = [finding for finding in told.findings if finding.severity != "info"]
    body: list[str] = []
    firsts = _firsts(_causes(bad))
    number = 0
    for number, finding in enumerate(firsts):
        rest = _besides(bad, firsts[: number + 1])
        short = ["", *_in_short(rest, width)] if rest else []
        follow = _consequences(bad, finding)
        for calls in (MOST_CALLS, 2, 1):
            lines = [
                "",
                *_paragraph(finding, told.packets, width, calls, _MOST_ROWS),
                *(_wrapped(", ".join(_kinds(follow)), width, "  So also: ") if follow else ()),
                *_folder([finding], told.captures),
            ]
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
    return [*body, "", *_in_short(rest, width)] if rest else body, bool(rest)


def all_lines(told: Told, width: int) -> Iterator[str]:
    """Everything, however many lines it takes."""
    yield from _headline(told, width)
    bad = [finding for finding in told.findings if finding.severity != "info"]
    firsts = _firsts(_causes(bad))[:_MOST_TOLD]
    shown = [each for cause in firsts for each in (cause, *_firsts(_consequences(bad, cause)))]
    rest = [finding for finding in bad if all(finding is not one for one in shown)]
    for finding in shown:
        yield ""
        yield from _paragraph(finding, told.packets, width, MOST_CALLS)
    if rest:
        yield ""
        yield "Besides (--json has all of it):"
        yield from _in_short(rest, width)
    yield from _folder(shown, told.captures)
    yield from _notes(told, width)
    yield from _errors(told.errors, width, most=_MOST_ERRORS)
    yield ""
    yield from _seen(told.not_seen, width)


def _firsts(findings: Sequence["Finding"]) -> list["Finding"]:
    """The first of each kind."""
    firsts = {finding.finding: finding for finding in reversed(findings)}
    return [finding for finding in findings if firsts[finding.finding] is finding]


def _causes(findings: Sequence["Finding"]) -> list["Finding"]:
    """Those that follow from no other."""
    return [finding for finding in findings if finding.cause is None]


def _consequences(findings: Sequence["Finding"], cause: "Finding") -> list["Finding"]:
    """Those that follow from one, however many are in between."""
    found = []
    for finding in findings:
        behind = finding.cause
        while behind is not None and behind is not cause:
            behind = behind.cause
        if behind is cause:
            found.append(finding)
    return found


def _besides(findings: Sequence["Finding"], told: Sequence["Finding"]) -> list["Finding"]:
    """Neither told nor a consequence of what is."""
    known = [each for one in told for each in (one, *_consequences(findings, one))]
    return [finding for finding in findings if all(finding is not each for each in known)]


def _folder(findings: Sequence["Finding"], captures: str | None) -> list[str]:
    if captures is None or not any(" DIR " in finding.command for finding in findings):
        return []
    return ["", f"DIR stands for tables: kwsniff analyze {clean(captures)} -o DIR"]


def _notes(told: Told, width: int) -> Iterator[str]:
    notes = [finding for finding in told.findings if finding.severity == "info"]
    if notes:
        yield ""
        yield "To know:"
        for finding in notes:
            yield from _wrapped(finding.text, width, "- ")


def _seen(sentences: Sequence[str], width: int) -> Iterator[str]:
    yield "Not seen:"
    for sentence in sentences:
        yield from _wrapped(sentence, width, "- ")


def _in_short(findings: Sequence["Finding"], width: int) -> Iterator[str]:
    """A line for each kind: whom it concerns."""
    for (severity, name), same in _by_kind(findings).items():
        causes = list(dict.fromkeys(each.explained_by for each in same if each.explained_by))
        follows = f" (follows from {', '.join(causes)})" if causes else ""
        yield from _wrapped(f"{severity.upper()} {name}: {_subjects(same)}{follows}", width, "- ")


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


def _errors(errors: Errors, width: int, most: int) -> Iterator[str]:
    """Who was told errors, and who told them, without routine ones."""
    for grid in failure_grids(without_routine(errors)):
        if grid.rows:
            more = f" (first {most} of {len(grid.rows)})" if len(grid.rows) > most else ""
            yield ""
            yield from _wrapped(f"{grid.title}{more}:", width, "")
            yield from fitted(replace(grid, rows=grid.rows[:most]), width).lines


def _headline(told: Told, width: int) -> Iterator[str]:
    basis = told.basis
    counts = [
        plural(number, word)
        for word in ("problem", "warning")
        if (number := sum(each.severity == word for each in told.findings))
    ]
    long = "" if basis["seconds"] is None else f" in {basis['seconds']:.1f} s"
    stands = (
        f"{plural(basis['calls'], 'call')} of {plural(basis['clients'], 'client')} "
        f"with {plural(basis['brokers'], 'broker')}{long}, {in_bytes(basis['payload_bytes'])}"
    )
    if counts and basis["calls"]:
        yield from _wrapped(f"{' and '.join(counts)} in {stands}.", width, "")
    elif counts:
        yield from _wrapped(f"{' and '.join(counts)}; there are no Kafka calls to judge.", width, "")
    elif basis["calls"]:
        yield from _wrapped(f"Nothing wrong was found in {stands}.", width, "")
    else:
        yield from _wrapped("There are no Kafka calls to judge.", width, "")


def _paragraph(
    finding: "Finding", packets: Packets, width: int, calls: int, rows: int | None = None
) -> Iterator[str]:
    """A finding with its proof; `rows` bounds what its sentence takes, and its command."""
    share = "" if not finding.time_share else f" {finding.time_share:.0%} of all time that calls took."
    cause = f", follows from {finding.explained_by}" if finding.explained_by else ""
    yield from _wrapped(
        f"{finding.severity.upper()} {finding.finding} "
        f"({finding.confidence}; {finding.blames} has to act{cause})",
        width,
        "",
    )
    lines = _wrapped(clean(finding.text) + share, width, "  ", whole=rows is None)
    yield from lines[:rows]
    if rows is not None and len(lines) > rows:
        yield "  ... (--all has all of it)"
    yield from _wrapped(clean(finding.advice), width, "  Do: ")
    if finding.call_ids:
        yield from _wrapped("calls " + _some(finding.call_ids), width, "  Proof: ")
        for number in finding.call_ids[:calls]:
            for said in packets.get(number, ()):
                yield f"    {number}: {clean(said)}"
    elif finding.frames:
        yield from _wrapped("packets " + _some(finding.frames), width, "  Proof: ")
        yield f"    {display_filter((each, each) for each in finding.frames[:MOST_CALLS])}"
    see = f"  See: {clean(finding.command)}"
    yield see if rows is None or _height([see], width) <= rows else "  See: a long command, which --all has"


def _some(numbers: Sequence[int] | Sequence[str], most: int = MOST_CALLS) -> str:
    shown = ", ".join(str(number) for number in numbers[:most])
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"


def _wrapped(text: str, width: int, begin: str, *, whole: bool = False) -> list[str]:
    """A word that is longer than a line is cut in its middle, or else left `whole`."""
    cut = text if whole else " ".join(shortened(word, width - len(begin)) for word in text.split())
    return textwrap.wrap(
        cut, width, initial_indent=begin, subsequent_indent=" " * len(begin),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
