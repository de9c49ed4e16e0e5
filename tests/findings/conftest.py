"""Tables of recordings, made once by the process that needs them first."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.findings import views
from kwsniff.findings.rule import load_rules
from tests.findings.account import Account, read_account

TablesOf = Callable[[Path], Path]
FindingsOf = Callable[[Path], list[dict[str, Any]]]
ENOUGH = 1_000_000_000
AccountOf = Callable[[Path], Account]


@pytest.fixture(scope="session")
def tables_of(tmp_path_factory: pytest.TempPathFactory) -> TablesOf:
    """A capture -> the folder of its tables. Several tests read it, and none changes it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tables"
    root.mkdir(exist_ok=True)

    def make(capture: Path) -> Path:
        folder = root / hashlib.sha256(str(capture).encode()).hexdigest()[:16]
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "findings.parquet").exists():
                # What a process with hundreds of tests holds may grow while this runs.
                kwsniff.analyze(capture, output=folder, limits={"memory": ENOUGH})
        return folder

    return make


@pytest.fixture(scope="session")
def findings_of(tables_of: TablesOf) -> FindingsOf:
    """A capture -> its findings, as `analyze` writes them."""

    def read(capture: Path) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (
            pq.ParquetFile(tables_of(capture) / "findings.parquet").read().to_pylist()
        )
        return rows

    return read


@pytest.fixture(scope="session")
def account_of(tables_of: TablesOf) -> AccountOf:
    """A capture -> what all rules find in its tables, worth asking or not, and its account; asked once."""

    def read(capture: Path) -> Account:
        folder = tables_of(capture)
        kept = folder.with_suffix(".account")
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.write_bytes(pickle.dumps(read_account(folder, load_rules(), as_written=True)))
        account: Account = pickle.loads(kept.read_bytes())  # noqa: S301 - this session wrote it
        return account

    return read


@pytest.fixture
def asked_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are asked in the order in which they are written: what is found is the same, in less time."""
    set_up = views._set_up

    def change(database: Any, memory: str = views.MEMORY) -> None:
        set_up(database, memory)
        database.execute("pragma disable_optimizer")

    monkeypatch.setattr(views, "_set_up", change)


def without_run(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings of a table as those of rules, which know no run."""
    return [{name: value for name, value in row.items() if name != "run_id"} for row in rows]
