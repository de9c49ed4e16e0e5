"""Folders of `live` have thousands of files: none of them is kept open, and their rows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.findings import table_views, views
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.views import READ, open_folder
from tests.house.tree import ROOT

CAPTURE: Final = ROOT / "captures" / "incidents" / "hot_partition" / "broker.pcap"
MANY: Final = 70


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    found = kwsniff.analyze(CAPTURE, tables=READ)
    return {name: getattr(found, name) for name in READ}


def _write(folder: Path, tables: dict[str, pa.Table], parts: int) -> None:
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True)
        for number in range(parts):
            begin, end = (rows.num_rows * each // parts for each in (number, number + 1))
            pq.write_table(rows.slice(begin, end - begin), folder / name / f"{number:03}.parquet")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many files are few here; beyond them are many, of which each rule reads all."""
    for module in (table_views, views):
        monkeypatch.setattr(module, "FEW", 4)
    return 4


@pytest.mark.slow
@pytest.mark.parametrize("more", [-2, 0, 1])
def test_findings_do_not_depend_on_the_number_of_files(
    more: int, few: int, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    parts = few + more
    _write(tmp_path / "whole", tables, 1)
    _write(tmp_path / "parts", tables, parts)
    with open_folder(tmp_path / "whole") as whole, open_folder(tmp_path / "parts") as database:
        expected = evaluate(whole)
        assert "hot_partition" in {each.finding for each in expected}
        assert evaluate(database) == expected
        assert evaluate(database) == expected  # asked again, of what was kept


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1, MANY - 1])
def test_one_file_of_before_among_many_lacks_a_column_and_no_other_does(
    place: int, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    _write(tmp_path, tables, MANY)
    old = tmp_path / "api_calls" / f"{place:03}.parquet"
    rows = pq.ParquetFile(old).read()
    pq.write_table(rows.drop_columns(["client_address"]), old)
    with open_folder(tmp_path) as database:
        (found,) = database.execute("select count(*), count(client_address) from api_calls").fetchall()
    calls = tables["api_calls"].num_rows
    assert found == (calls, calls - rows.num_rows)
    assert rows.num_rows > 0
