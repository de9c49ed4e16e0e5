"""Judges `kwsniff why` on situations of public reports: `python -m tests.findings.field [NAME...]`.

captures/field/truth.tsv says what is right. It was written before the rules that find it.
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import kwsniff
from tests.house.tree import ROOT

FIELD: Final = ROOT / "captures" / "field"
NOTHING: Final = "-"


@dataclass(frozen=True, slots=True)
class Truth:
    """One line of truth.tsv.

    `findings`: names one of which must be found, none where nothing is wrong; `subjects`: words one of which
    stands in its subject or text; `blames`: one of these owns it. `forbidden`: names, `blames:WHO`,
    `*@WORD` (anything about it), `*` (any problem or warning).
    """

    capture: str
    findings: tuple[str, ...]
    subjects: tuple[str, ...]
    blames: tuple[str, ...]
    forbidden: tuple[str, ...]
    why: str

    @property
    def path(self) -> Path:
        """The recording, compressed or not."""
        return next(FIELD.glob(f"{self.capture}.pcap*"))

    def faults(self, rows: Iterable[dict[str, Any]]) -> list[str]:
        """What is wrong about these rows of `findings`; nothing where they are right."""
        harms = [row for row in rows if row["severity"] != "info"]
        found = [f"{row['finding']} is forbidden" for row in harms if self._forbids(row)]
        if self.findings and not any(self._meets(row) for row in harms):
            named = ", ".join(f"{row['finding']} ({row['blames']}) {row['subject']}" for row in harms)
            found.append(f"{' or '.join(self.findings)} is missing among: {named or 'nothing'}")
        return found

    def _meets(self, row: dict[str, Any]) -> bool:
        words = f"{row['subject']} {row['text']}".lower()
        return (
            row["finding"] in self.findings
            and (not self.subjects or any(each.lower() in words for each in self.subjects))
            and (not self.blames or row["blames"] in self.blames)
        )

    def _forbids(self, row: dict[str, Any]) -> bool:
        return any(
            each in ("*", row["finding"], f"blames:{row['blames']}")
            or (each.startswith("*@") and each[2:].lower() in row["subject"].lower())
            for each in self.forbidden
        )


def read_truths(path: Path = FIELD / "truth.tsv") -> list[Truth]:
    """All lines, in their order."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Truth(
                line["capture"],
                _words(line["finding"], "|"),
                _words(line["subject"], "|"),
                _words(line["blames"], "|"),
                _words(line["forbid"], ","),
                line["why"],
            )
            for line in csv.DictReader(file, delimiter="\t")
        ]


def _words(text: str, between: str) -> tuple[str, ...]:
    return tuple(each for each in text.split(between) if each and each != NOTHING)


def main(names: Sequence[str]) -> int:
    """Prints what is wrong; 1 if anything is."""
    truths = [each for each in read_truths() if not names or each.capture in names]
    wrong = 0
    for truth in truths:
        rows = kwsniff.analyze(truth.path).findings.to_pylist()
        faults = truth.faults(rows)
        wrong += bool(faults)
        sys.stdout.write(f"{'wrong' if faults else 'right'} {truth.capture}\n")
        for line in [*faults, *(f"{row['severity']} {row['text']}" for row in rows if names)]:
            sys.stdout.write(f"      {line}\n")
    sys.stdout.write(f"{len(truths) - wrong} of {len(truths)} are right\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
