"""Clients that give themselves no name are known by their address, never by that of a broker."""

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import READ, open_tables
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"
SHOWN = [
    ("hot_java/broker", "hot_partition"),
    ("loss_5/client", "loss_slows_calls"),
    ("held_back_python/broker", "read_committed_held_back"),
    ("healthy_far/broker", "far_away"),
]


def unnamed(table: pa.Table) -> pa.Table:
    """Without any client's name."""
    if "client_id" not in table.column_names:
        return table
    at = table.column_names.index("client_id")
    field = table.schema.field(at)
    return table.set_column(at, field, pa.nulls(table.num_rows, field.type))


def found(capture: str, name: str) -> list[Finding]:
    analysis = kwsniff.analyze(INCIDENTS / f"{capture}.pcap")
    with open_tables({table: unnamed(analysis.table(table)) for table in READ}) as database:
        return evaluate(database, rules=[rule for rule in load_rules() if rule.name == name])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("capture", "name"), SHOWN)
def test_a_client_without_a_name_is_its_address(capture: str, name: str) -> None:
    findings = found(capture, name)
    assert findings
    for each in findings:
        told = {each.parties[key] for key in ("client", "reader") if key in each.parties}
        assert all(party.startswith("10.88.0.1") and party != "10.88.0.1" for party in told), each.parties
        assert "10.88.0.1 " not in each.text


def test_who_wrote_without_a_name_is_asked_of_the_rows() -> None:
    analysis = kwsniff.analyze(INCIDENTS / "hot_java" / "broker.pcap")
    for change, known in ((lambda table: table, True), (unnamed, False)):
        figures = Figures()
        for name in ("api_calls", "connections", "partitions"):
            for batch in change(analysis.table(name)).to_batches():
                figures.add(name, batch)
        assert ("written" in figures.sums()) is known
        assert figures.as_dict()["hot_times"] > 2.4
