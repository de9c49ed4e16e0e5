"""Checks the account of `kwsniff why` over all recordings: `python -m tests.findings.account [FOLDER...]`.

Calls and connections are counted from the tables, without the rules; the account must add up to them.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import kwsniff
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.finding import Finding
from kwsniff.findings.finding_calls import add_up, list_entries
from kwsniff.findings.prefilter.figures import figures_of
from kwsniff.findings.rule import Rule
from kwsniff.findings.views import open_folder
from kwsniff.tables.stored_files import files_of_tables
from tests.house.tree import ROOT

CAPTURES: Final = ROOT / "captures"


@dataclass(frozen=True, slots=True)
class Account:
    """What `why` says of a folder of tables, and how many rows its tables have (twins left out).

    `entries`: what finding_calls would have; `kept`: whether the database kept rows of small tables.
    """

    findings: Sequence[Finding]
    calls: Mapping[str, Any]
    connections: Mapping[str, Any]
    rows: Mapping[str, int]
    entries: Sequence[Sequence[int]]
    kept: bool

    @property
    def harmed(self) -> int:
        """Entries that are neither fine nor routine."""
        sides = (self.calls, self.connections)
        return sum(each["unexplained"] + sum(each["explained"].values()) for each in sides)

    @property
    def is_quiet(self) -> bool:
        """Whether no finding is a problem or a warning."""
        return all(each.severity == "info" for each in self.findings)

    @property
    def unexplained(self) -> int:
        """Calls and connections that no finding explains."""
        return int(self.calls["unexplained"] + self.connections["unexplained"])

    def faults(self) -> Iterator[str]:
        """What does not add up."""
        for name, account in (("calls", self.calls), ("connections", self.connections)):
            named = [*account["routine"].values(), *account["explained"].values()]
            total = account["fine"] + sum(named) + account["unexplained"]
            if total != account[name] or account[name] != self.rows[name]:
                yield f"{name}: {total} in the account of {account[name]}, {self.rows[name]} in the tables"
            if account["fine"] < 0 or account["unexplained"] < 0 or any(each <= 0 for each in named):
                yield f"{name}: a number is not positive: {account}"
        shown = sum(int(each.value or 0) for each in self.findings if each.finding == "unexplained")
        if shown != self.unexplained:
            yield f"{self.unexplained} entries are unexplained, findings name {shown}"
        for name, account in (("calls", self.calls), ("connections", self.connections)):
            known = {each.finding for each in self.findings if each.severity != "info"} - {"unexplained"}
            if unknown := account["explained"].keys() - known:
                yield f"{name}: explained by {', '.join(unknown)}, which was not found"


def read_account(folder: Path, rules: Sequence[Rule] | None = None, *, as_written: bool = False) -> Account:
    """The account of a folder of tables, by these rules or by those that are worth asking. `as_written`:
    queries are asked in the order in which they are written, which takes less than to find a better one."""
    if rules is None:
        rules = figures_of(files_of_tables(folder)).worth_asking()
    with open_folder(folder) as database:
        if as_written:
            database.execute("pragma disable_optimizer")
        findings = evaluate(database, rules=rules)
        found = add_up(database, findings)
        entries = [row for rows in list_entries(database, findings) for row in rows.tolist()]
        kept = _count(database, "from duckdb_tables() where table_name = 'client_call'") > 0
        twin = "select (run_id, connection_id) from connections where twin_of is not null"
        rows = {
            name: _count(database, f"from {table} where (run_id, connection_id) not in ({twin})")
            for name, table in (("calls", "api_calls"), ("connections", "connections"))
        }
    return Account(findings, found["account"], found["connections"], rows, entries, kept)


def _count(database: Any, rows: str) -> int:
    return int(database.execute(f"select count(*) {rows}").fetchall()[0][0])


def main(folders: Sequence[str]) -> int:
    """Prints what does not add up, and sums over all recordings; 1 if anything is wrong."""
    places = [Path(each) for each in folders] or [CAPTURES]
    paths = sorted(path for place in places for path in place.rglob("*.pcap*"))
    counted, wrong = Counter[str](), 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            try:
                kwsniff.analyze(path, output=folder)
            except kwsniff.CaptureError:
                continue
            account = read_account(Path(folder))
        faults = [*account.faults()]
        wrong += bool(faults)
        for line in faults:
            sys.stdout.write(f"{path}: {line}\n")
        counted["recordings"] += 1
        counted["quiet"] += account.is_quiet
        counted["quiet, with harm that no rule explains"] += account.is_quiet and account.harmed > 0
        for name, one in (("calls", account.calls), ("connections", account.connections)):
            counted[name] += one[name]
            counted[f"{name}: fine"] += one["fine"]
            counted[f"{name}: routine"] += sum(one["routine"].values())
            counted[f"{name}: explained"] += sum(one["explained"].values())
            counted[f"{name}: unexplained"] += one["unexplained"]
        if account.is_quiet and account.harmed:
            sys.stdout.write(f"{path}: {account.calls} {account.connections}\n")
    for name, number in counted.items():
        sys.stdout.write(f"{number:>10,} {name}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
