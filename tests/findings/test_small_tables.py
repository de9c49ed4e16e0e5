"""Rows of small tables are kept in the database; what is found is the same as over views of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.findings import small_tables, views
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.rule import load_rules
from kwsniff.findings.small_tables import are_few, are_small
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.account import read_account
from tests.findings.conftest import TablesOf
from tests.findings.test_figures import RECORDINGS

MEMORY = "512MB"
_GROUPS = 4
TOGETHER = [RECORDINGS[first::_GROUPS] for first in range(_GROUPS)]
"""Runs in one folder, some 60 of them: rules are planned once for all."""
ALONE = [
    [path]
    for path in RECORDINGS
    if (path.parent.name, path.stem) in (("leader_killed_in_sync", "broker"), ("mtu_answers", "broker"))
]
"""What rules find in these, among others they do not."""


def _named(captures: Sequence[Path]) -> str:
    return f"{captures[0].parent.name}-{captures[0].stem}-{len(captures)}"


@pytest.fixture
def open_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether the database keeps the rows of all tables from now on, or of none."""

    def change(kept: bool) -> None:
        monkeypatch.setattr(views, "are_small", lambda *_: kept)

    return change


def _put_together(folders: Sequence[Path], folder: Path) -> None:
    """Writes the tables of several runs as one folder of them."""
    for name in {file.name for each in folders for file in each.glob("*.parquet")}:
        parts = [pq.ParquetFile(each / name).read() for each in folders if (each / name).exists()]
        pq.write_table(pa.concat_tables(parts).unify_dictionaries(), folder / name)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("captures", [*TOGETHER, *ALONE], ids=_named)
def test_findings_calls_and_accounts_are_the_same_over_kept_rows_and_over_files(
    captures: Sequence[Path], tables_of: TablesOf, open_as: Callable[[bool], None], tmp_path: Path
) -> None:
    """Those over kept rows are of all rules, the others of rules worth asking by figures of files: as `why`
    reads these, and as `analyze` does."""
    _put_together([tables_of(capture) for capture in captures], tmp_path)
    open_as(True)
    kept = read_account(tmp_path, load_rules())
    open_as(False)
    viewed = read_account(tmp_path)
    assert kept.rows["calls"] + kept.rows["connections"] > 0
    assert (kept.kept, viewed.kept) == (True, False)
    assert replace(viewed, kept=True) == kept
    assert find_in_files(files_of_tables(tmp_path)) == kept.findings


@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_tables_of_a_recording_are_small(capture: Path, tables_of: TablesOf) -> None:
    assert are_small(files_of_tables(tables_of(capture)).values(), MEMORY)


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
