"""Which client causes errors: the summary and `kwsniff why` name it, on narrow screens, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwsniff.cli.error_tables import clients_grid, failure_grids, without_routine
from kwsniff.cli.main import BAD_NEWS, run
from kwsniff.cli.summary.summary import summary_parts
from kwsniff.cli.text_tables import Grid, fit
from tests.house.tree import ROOT

UNKNOWN_TOPIC = ROOT / "captures" / "incidents" / "unknown_topic"
(CAPTURE,) = UNKNOWN_TOPIC.glob("*.pcap")


def told(client_id: str | None, error: str = "UNKNOWN_TOPIC_OR_PARTITION") -> dict[str, Any]:
    party = {"client_id": client_id, "client_address": "10.77.0.2"}
    return {**party, "error_code": 3, "error_name": error, "count": 1234, "calls": 1000, "share": 0.0512}


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", ["shop", "payments-consumer-group-eu-west-1-instance-17"])
def test_names_errors_and_counts_have_room(columns: int, name: str) -> None:
    lines = fit(clients_grid([told(name)]), columns).lines
    assert max(map(len, lines)) <= columns
    assert name[:5] in lines[1]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in lines[1]
    if name == "shop":
        assert lines[1].endswith("1,234    5 %")


def test_a_client_without_an_id_goes_by_its_address() -> None:
    assert fit(clients_grid([told(None)]), 60).lines[1].split()[0] == "10.77.0.2"


def test_names_from_the_wire_cannot_steer_the_terminal() -> None:
    (row,) = clients_grid([told("\x1b[2Jevil\nline")]).rows
    assert row[0] == r"\x1b[2Jevil\nline"


def test_the_summary_and_why_name_who_is_told_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["analyze", str(CAPTURE), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    grids = [part for part in summary_parts({**summary, "tables": {}}, 10) if isinstance(part, Grid)]
    shown = {grid.title: "\n".join(fit(grid, 60).lines) for grid in grids}
    assert run(["why", str(CAPTURE), "--json"]) == BAD_NEWS
    why = json.loads(capsys.readouterr().out)
    assert run(["why", str(CAPTURE), "--all"]) == BAD_NEWS
    said = capsys.readouterr().out
    sides = ("errors_by_client", "errors_by_broker")
    for grid in failure_grids(without_routine({key: why[key] for key in sides})):
        assert grid.rows
        assert [row[0] in shown[grid.title] for row in grid.rows] == [True] * len(grid.rows)
        assert f"{grid.title}:" in " ".join(said.split())
        assert grid.rows[0][0] in said
    # No broker talks to another in this recording: both count the same.
    for key in sides:
        assert sorted(map(json.dumps, why[key])) == sorted(map(json.dumps, summary[key]))


def test_why_has_nothing_to_say_of_routine(capsys: pytest.CaptureFixture[str]) -> None:
    """A member that gets its id and a rebalance under way: in the JSON, not on the screen."""
    healthy = UNKNOWN_TOPIC.parent / "healthy_rolling" / "broker.pcap"
    assert run(["why", str(healthy), "--json"]) == 0
    told = {each["error_name"] for each in json.loads(capsys.readouterr().out)["errors_by_client"]}
    assert told == {"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"}
    assert run(["why", str(healthy), "--all"]) == 0
    said = capsys.readouterr().out
    assert "No finding in " in " ".join(said.split())
    assert "Errors" not in said
