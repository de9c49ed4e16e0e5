"""Advice that names a setting says what the client has set, and what its library has by default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kwsniff.findings.client_settings import COLUMNS, name_settings
from kwsniff.tables.schema import TABLES
from tests.findings.conftest import FindingsOf, TablesOf
from tests.findings.measured import recordings
from tests.findings.test_weights import PLAIN, found

RECORDED = {(each.name, each.place): each for each in recordings()}
NOTHING: dict[str, Any] = dict.fromkeys(
    ("client_id", "address", "software", "software_version", "several", "defaults", *COLUMNS.values())
)


def _advice(text: str, *clients: dict[str, Any], client: str = "billing") -> str:
    (each,) = found((replace(PLAIN, advice=text), {"client": client}))
    name_settings([each], [NOTHING | row for row in clients])
    return each.advice.removeprefix(text)


BILLING = {
    "client_id": "billing", "software": "kgo", "software_version": "v1.20.0", "fetch_max_wait_ms": 1500,
    "linger_ms": 0, "defaults": ["fetch_max_wait_ms=5000"],
}  # fmt: skip


def test_value_and_default_follow_the_advice() -> None:
    assert _advice("Raise fetch.max.wait.ms.", BILLING) == (
        " billing (kgo v1.20.0) has fetch.max.wait.ms 1500 (default 5000)."
    )
    assert _advice("Raise linger.ms, or fetch.max.wait.ms (linger.ms first).", BILLING) == (
        " billing (kgo v1.20.0) has linger.ms 0, fetch.max.wait.ms 1500 (default 5000)."
    )


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Raise batch.size.", [BILLING]),  # no setting that clients have
        ("Raise session.timeout.ms.", [BILLING]),  # not known
        ("Raise queue.linger.ms or linger.ms.x.", [BILLING]),  # other names
        ("Raise linger.ms.", [BILLING, BILLING | {"linger_ms": 5}]),  # two of that name differ
        ("Raise linger.ms.", [BILLING | {"several": ["linger_ms: 0 in 3, 5 in 4"]}]),
        ("Raise linger.ms.", [BILLING | {"client_id": "shop"}]),  # another client
    ],
)
def test_a_setting_without_one_value_is_left_out(text: str, rows: list[dict[str, Any]]) -> None:
    assert _advice(text, *rows) == ""


def test_a_client_without_a_name_is_known_by_its_address() -> None:
    row = {"address": "10.0.0.7", "linger_ms": 1}
    assert _advice("Set linger.ms.", row, client="10.0.0.7") == " 10.0.0.7 has linger.ms 1."


def test_settings_are_columns_of_the_table() -> None:
    assert {*COLUMNS.values()} <= {column.name for column in TABLES["clients"].columns}


@pytest.mark.parametrize(
    ("name", "finding", "setting"),
    [
        ("poll_interval_exceeded", "poll_interval_exceeded", "max.poll.interval.ms"),
        # found by sums, without a database
        ("busy_fetch", "busy_fetch", "fetch.max.wait.ms"),
    ],
)
def test_advice_for_a_recorded_client_has_the_value_of_the_table(
    name: str, finding: str, setting: str, tables_of: TablesOf, findings_of: FindingsOf
) -> None:
    path: Path = RECORDED[name, "broker"].path
    (row,) = (each for each in findings_of(path) if each["finding"] == finding)
    clients = pq.read_table(tables_of(path) / "clients.parquet").to_pylist()
    (value,) = (each[COLUMNS[setting]] for each in clients if each["client_id"] == row["subject"])
    assert f"has {setting} {value} (default " in row["advice"]
