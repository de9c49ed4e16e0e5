"""Figures for findings are counted in the tasks; the driver reads tables again only where rules need rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwsniff.findings import finding_rows
from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.spark import findings
from kwsniff.tables.schema import TABLES
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.test_added_up import told
from tests.perf.loads import SMALL_PERIOD, rounds, small
from tests.perf.repeat import write
from tests.spark.compare import analyzed, written
from tests.spark.test_pipeline import CAPTURES, RECORDED, recorded, run
from tests.traffic.nat import with_nat_twin

INCIDENTS = ("hot_partition", "lag_growing", "busy_fetch")


def _refuse(*_: object) -> None:
    raise AssertionError("tables were read again")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Figures]:
    """The figures that findings are made of."""
    figures: list[Figures] = []

    def remember(found: Figures, *arguments: Any, **options: Any) -> Any:
        figures.append(found)
        return finding_rows.find(found, *arguments, **options)

    monkeypatch.setattr(findings, "find", remember)
    return figures


def _captures() -> list[Path]:
    incidents = [path for name in INCIDENTS for path in (CAPTURES / "incidents" / name).glob("broker.pcap")]
    return [*map(recorded, RECORDED), *incidents]


@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", _captures(), ids=lambda path: path.parent.name)
def test_figures_of_all_tasks_are_those_of_the_tables(
    in_process: None, tmp_path: Path, seen: list[Figures], capture: Path
) -> None:
    run(capture, tmp_path / "out", num_buckets=5)
    (figures,) = seen
    assert told(figures) == told(figures_of(files_of_tables(tmp_path / "out")))


def test_figures_of_twins_are_those_of_the_tables(
    in_process: None, tmp_path: Path, seen: list[Figures]
) -> None:
    (tmp_path / "twice.pcap").write_bytes(with_nat_twin(recorded("three_brokers")))
    run(tmp_path / "twice.pcap", tmp_path / "out")
    (figures,) = seen
    assert figures.twins
    assert told(figures) == told(figures_of(files_of_tables(tmp_path / "out")))


def test_where_figures_tell_all_nothing_is_read_again(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = tmp_path / "small.pcap"
    write(capture, rounds(small), megabytes=3, period_ns=SMALL_PERIOD)
    expected = analyzed(capture)["findings"]
    for name in (
        "findings.views._set_up",
        "findings.finding_rows.figures_of",
        "spark.rewritten_parts.copy_parts",
    ):
        monkeypatch.setattr(f"kwsniff.{name}", _refuse)
    # the calls of each finding are only in the files
    run(capture, tmp_path / "out", tables=[name for name in TABLES if name != "finding_calls"])
    assert written(tmp_path / "out")["findings"] == expected
    assert {"request_storm"} <= {row["finding"] for row in expected}


def test_without_findings_nothing_is_counted(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figures, "add", _refuse)
    run(recorded("three_brokers"), tmp_path / "out", tables=["api_calls", "groups"])
    assert written(tmp_path / "out")["api_calls"]
