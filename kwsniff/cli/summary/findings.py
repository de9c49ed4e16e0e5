"""Findings in short, in a summary; `kwsniff why` has the proof."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kwsniff.cli.text_tables import Grid, Prose
from kwsniff.texts import clean
from kwsniff.zones import UTC_ZONE, Zone, from_iso

_HOLD_UP: Final = ("broker_stalled", "broker_slow", "replication_slow")
_MOST: Final = 0.5  # share of total call latency


def reason_of_waits(findings: Sequence[Mapping[str, Any]]) -> str:
    """The finding with the largest share of call latency: queued calls waited because of it."""
    for each in findings:
        if each["finding"] in _HOLD_UP and (each["time_share"] or 0) >= _MOST:
            return str(each["finding"])
    return ""


def findings_part(
    summary: Mapping[str, Any], top: int, zone: Zone = UTC_ZONE
) -> Iterator[Grid | Prose | str]:
    """A grid of the problems and warnings, and the sentence of the first; one line if calls were judged and
    there are none."""
    found = summary.get("findings") or []
    bad = [each for each in found if each["severity"] != "info"]
    if not bad and any(each["finding"] == "unexplained" for each in found):
        yield ""
        yield "No rule explains the harm: `kwsniff why` shows what was harmed"
    elif not bad and summary.get("judged") and summary["calls"]:
        yield ""
        yield "No findings: no rule of `kwsniff why` matches; see errors and slowest calls above"
    if bad:
        rows = [
            (
                each["severity"],
                each["finding"],
                each["blames"],
                clean(each["subject"]),
                each["explained_by"] or "",
            )
            for each in bad[:top]
        ]
        more = f" (first {top} of {len(bad)})" if len(bad) > top else ""
        yield Grid(
            f"Findings; for proof run `kwsniff why`{more}",
            ("severity", "finding", "owner", "subject", "follows from"),
            rows,
            ("finding", "subject", "owner", "severity", "follows from"),
        )
        first, last = (from_iso(bad[0][name]) for name in ("first_time", "last_time"))
        if first is not None or last is not None:
            yield Prose(f"When: {zone.between(first, last)}")
        yield Prose(clean(bad[0]["text"]))
