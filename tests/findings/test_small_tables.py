"""Rows of small tables are kept in the database; what is found is the same as over views of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.findings import small_tables
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.small_tables import are_few, are_small
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.account import read_account
from tests.findings.conftest import AccountOf, TablesOf
from tests.findings.test_figures import RECORDINGS

MEMORY = "512MB"


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_findings_calls_and_accounts_are_the_same_over_kept_rows_and_over_files(
    capture: Path, tables_of: TablesOf, account_of: AccountOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those over kept rows are of all rules, the others of rules worth asking by figures of files."""
    folder = tables_of(capture)
    kept = account_of(capture)
    monkeypatch.setattr(small_tables, "_BYTES", 0)
    # Of several recordings of an incident the last is read as `analyze` reads files, others as `why` does.
    beside = [each for each in RECORDINGS if each.parent == capture.parent]
    if len(beside) == 1 or capture != beside[-1]:
        viewed = read_account(folder)
        assert (kept.kept, viewed.kept) == (True, False)
        assert replace(viewed, kept=True) == kept
    if capture == beside[-1]:
        assert find_in_files(files_of_tables(folder)) == kept.findings


def _rows(text: str, number: int) -> pa.Table:
    return pa.table({"text": pa.array([text] * number).dictionary_encode()})


@pytest.mark.parametrize(
    ("text", "number", "small"), [("orders", 1_000, True), ("o" * 30_000, 10_000, False)]
)
def test_a_long_text_in_many_rows_is_not_small_however_small_its_file(
    text: str, number: int, small: bool, tmp_path: Path
) -> None:
    """The rows take `len(text) * number` bytes: 6 kB and 300 MB."""
    file = tmp_path / "api_calls.parquet"
    rows = _rows(text, number)
    pq.write_table(rows, file)
    assert file.stat().st_size < 1 << 20
    assert are_small([[file]], MEMORY) is small
    assert are_few([rows], MEMORY) is small


def test_many_numbers_are_not_small_however_small_their_file(tmp_path: Path) -> None:
    """20 million numbers of 8 bytes take 160 MB; they are equal, so that a file has one of them."""
    file = tmp_path / "latencies.parquet"
    pq.write_table(pa.table({"total_ns": np.zeros(20_000_000, np.int64)}), file)
    assert file.stat().st_size < 1 << 20
    assert not are_small([[file]], MEMORY)


def test_tables_of_few_name_views() -> None:
    from kwsniff.findings.views import statements_of

    assert all(
        f"create temp view {name} as" in text
        for name, text in statements_of(small_tables.TABLES_OF_FEW).items()
    )
