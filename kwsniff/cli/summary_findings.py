"""What is wrong, shortened: the first rows of a summary; `kwsniff why` has the proof."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.cli.grids import Grid
from kwsniff.texts import clean


def findings_grid(findings: Sequence[Mapping[str, Any]], top: int) -> Iterator[Grid]:
    """A grid of the problems and warnings, if there are any."""
    bad = [each for each in findings if each["severity"] != "info"]
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
            f"What is wrong, and who has to act; `kwsniff why` has the proof{more}",
            ("severity", "finding", "who", "subject", "follows from"),
            rows,
            ("finding", "subject", "who", "severity", "follows from"),
        )
