"""The score kept in the repository: one line per fault."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.listing import Fault
from tests.faults.run import Outcome

SCORE = Path(__file__).parent / "score.tsv"
_HEAD = "number\tfile\tchanges\tnoticed by"
_UNNOTICED = "-"


def read_score(path: Path = SCORE) -> Mapping[int, Outcome]:
    """What is known of each fault."""
    if not path.is_file():
        return {}
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines()[1:])
    return {int(row[0]): Outcome(int(row[0]), "" if row[3] == _UNNOTICED else row[3]) for row in rows}


def write_score(faults: Sequence[Fault], outcomes: Mapping[int, Outcome], path: Path = SCORE) -> None:
    """Those that have been tried, by number."""
    lines = [
        f"{fault.number}\t{fault.file}\t{fault.changes}\t{outcomes[fault.number].by or _UNNOTICED}"
        for fault in faults
        if fault.number in outcomes
    ]
    path.write_text("\n".join([_HEAD, *lines]) + "\n", "utf-8")


def summarize(faults: Sequence[Fault], outcomes: Mapping[int, Outcome]) -> str:
    """One line: how many there are, were tried and noticed."""
    tried = [outcomes[fault.number] for fault in faults if fault.number in outcomes]
    noticed = sum(outcome.is_noticed for outcome in tried)
    share = f" ({100 * noticed / len(tried):.1f} %)" if tried else ""
    return f"{len(faults)} faults, {len(tried)} tried, {noticed} noticed{share}"
