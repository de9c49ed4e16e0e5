"""The answer of ``kwsniff compare`` in lines: a sentence, each effect once, the findings of both sides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kwsniff.cli.inputs import wrap
from kwsniff.cli.text_tables import Grid, fit, shorten
from kwsniff.findings.compare_effects import Effect, describe, group_effects
from kwsniff.texts import clean, in_percent, plural

if TYPE_CHECKING:
    from kwsniff.findings.compare import Difference
    from kwsniff.findings.display_filters import DisplayFilter
    from kwsniff.findings.finding import Finding

_LONGEST: Final = 32
_MOST_OTHERS: Final = 8
_MOST_CALLS: Final = 6
_UNITS: Final = (
    "_ms: mean per call; longest: one call. errors: share of calls. contribution: share of total latency, or "
    "of calls, in BAD. --json has all differences."
)


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """What one side is, and what `kwsniff why` finds there."""

    title: str
    """GOOD or BAD, with its input."""
    calls: int
    findings: Sequence["Finding"] = ()
    harmed: int | None = None
    """Calls that a finding explains, or that none does; None: not judged."""


def compare_lines(
    differences: Sequence["Difference"],
    sides: Sequence[SideAnswer],
    width: int,
    filters: Mapping[int, Sequence["DisplayFilter"]],
) -> Iterator[str]:
    """The lines for people. `filters`: of calls in BAD, by their numbers."""
    if not all(side.calls for side in sides):
        yield "Nothing to compare: one side has no calls."
    elif not differences:
        yield "No significant difference."
    else:
        yield from wrap(describe(differences[0]), width)
    yield ""
    for side in sides:
        yield from wrap(_describe_side(side), width, f"{side.title}: ")
    if differences:
        yield ""
        yield from _effect_lines(group_effects(differences), len(differences), width, filters)
    yield from _finding_lines(sides, width)


def _describe_side(side: SideAnswer) -> str:
    harmed = "" if side.harmed is None else f", {side.harmed:,} harmed"
    return f"{plural(side.calls, 'call')}{harmed}"


def _effect_lines(
    effects: Sequence[Effect], differences: int, width: int, filters: Mapping[int, Sequence["DisplayFilter"]]
) -> Iterator[str]:
    names = ("measure", "subject", "good", "bad", "contribution", "good, 99 %", "bad, 99 %", "ratio")
    order = ("measure", "subject", "good", "bad", "contribution", "bad, 99 %", "good, 99 %", "ratio")
    rows = [
        (
            each.first.what,
            shorten(clean(f"{each.first.subject_kind} {each.first.subject}"), _LONGEST),
            figure(each.first.good),
            figure(each.first.bad),
            in_percent(each.first.share),
            interval(each.first.good_interval),
            interval(each.first.bad_interval),
            figure(each.first.ratio),
        )
        for each in effects
    ]
    yield f"{plural(len(effects), 'effect')}, largest contribution first:"
    yield from fit(Grid("", names, rows, order), width).lines
    yield ""
    for each in effects:
        if each.others:
            yield from wrap(_name_others(each), width, f"{each.what} also: ")
    if differences > len(effects):
        yield ""
    ids = effects[0].first.call_ids[:_MOST_CALLS]
    yield from wrap("Calls of the first effect" + (":" if ids else ": none to show."), width)
    yield from (f"  {number}: {each.filter}" for number in ids for each in filters.get(number, ()))
    yield from wrap(_UNITS, width)


def _name_others(effect: Effect) -> str:
    names = [
        shorten(clean(f"{each.subject_kind} {each.subject}"), _LONGEST)
        for each in effect.others[:_MOST_OTHERS]
    ]
    more = len(effect.others) - len(names)
    return ", ".join(names) + (f", and {more} more" if more else "")


def _finding_lines(sides: Sequence[SideAnswer], width: int) -> Iterator[str]:
    good, bad = ({each.finding: each for each in reversed(side.findings)} for side in sides)
    for title, found in (
        ("Findings in BAD only", [each for name, each in bad.items() if name not in good]),
        ("Findings in both", [each for name, each in bad.items() if name in good]),
        ("Findings in GOOD only", [each for name, each in good.items() if name not in bad]),
    ):
        if found:
            yield ""
            yield f"{title}:"
            for each in reversed(found):
                yield from wrap(f"{each.finding}, owner: {each.blames}. {clean(each.text)}", width, "  ")


def side_json(side: SideAnswer) -> Mapping[str, Any]:
    """A side for programs."""
    findings = [
        {"finding": each.finding, "severity": each.severity, "blames": each.blames, "subject": each.subject}
        for each in side.findings
    ]
    return {"calls": side.calls, "harmed": side.harmed, "findings": findings}


def figure(number: float | None) -> str:
    """Three digits."""
    return "" if number is None else f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def interval(bounds: tuple[float, float]) -> str:
    """Bounds of a mean; only means have some."""
    return "" if bounds[0] == bounds[1] else f"{figure(bounds[0])} to {figure(bounds[1])}"
