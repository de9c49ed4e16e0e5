"""The way of records, against what Java's clients noted of each: `python -m tests.broker deliveries_java`."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kwsniff
from tests.broker.ways import JAVA_PLAYS, RECORDS
from tests.house.tree import ROOT

RECORDED = ROOT / "captures" / "deliveries_java"
TOPICS = [play.split()[0].removeprefix("topic=") for play in JAVA_PLAYS]
STEPS = (
    "record_time",
    "produced_time",
    "acknowledged_time",
    "visible_time",
    "fetched_time",
    "committed_time",
)
MILLISECOND = 1_000

Both = tuple[dict[str, int], dict[str, Any]]
"""What clients noted of a record, and the row of its batch; microseconds since the epoch."""


def _us(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _percentile(values: Iterator[int], percent: int) -> int:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found = kwsniff.analyze(RECORDED / "capture.pcap.gz").deliveries.to_pylist()
    return [row | {name: row[name] and _us(row[name]) for name in STEPS} for row in found]


@pytest.fixture(scope="module")
def noted() -> dict[tuple[str, int], dict[str, int]]:
    with (RECORDED / RECORDS).open() as file:
        lines = [*csv.DictReader(file, delimiter="\t")]
    return {
        (line["topic"], int(line["offset"])): {name: int(line[name]) for name in line if name.endswith("_us")}
        for line in lines
    }


@pytest.fixture(scope="module")
def records(rows: list[dict[str, Any]], noted: dict[tuple[str, int], dict[str, int]]) -> list[Both]:
    batches = {
        (row["topic"], offset): row
        for row in rows
        for offset in range(row["base_offset"], row["last_offset"] + 1)
    }
    return [(times, batches[place]) for place, times in noted.items()]


def test_every_noted_record_is_in_one_batch_with_all_steps(
    rows: list[dict[str, Any]], noted: dict[tuple[str, int], dict[str, int]]
) -> None:
    covered = [
        (row["topic"], offset) for row in rows for offset in range(row["base_offset"], row["last_offset"] + 1)
    ]
    assert sorted(covered) == sorted(noted)
    assert {row["topic"] for row in rows} == {*TOPICS}
    for row in rows:
        assert row["group_id"] == f"{row['topic']}-readers"
        assert None not in [row[name] for name in STEPS]


def test_clients_and_packets_are_in_their_order(records: list[Both]) -> None:
    """Java sets the time of a record in whole milliseconds, after send was called."""
    for times, row in records:
        assert times["sent_us"] <= row["produced_time"]
        assert row["acknowledged_time"] <= times["acknowledged_us"]
        assert row["fetched_time"] <= times["polled_us"]
        assert times["polled_us"] <= times["commits_us"] <= row["committed_time"] <= times["committed_us"]
        if times is _last(row, records):
            assert times["sent_us"] - MILLISECOND < row["record_time"]


def _last(row: dict[str, Any], records: list[Both]) -> dict[str, int]:
    """Of the batch's records the one that was sent last."""
    return max((times for times, own in records if own is row), key=lambda times: times["sent_us"])


@pytest.mark.parametrize(
    ("column", "name", "sign"),
    [
        ("acknowledged_time", "acknowledged_us", 1),
        ("fetched_time", "polled_us", 1),
        ("committed_time", "commits_us", -1),
    ],
)
def test_of_a_hundred_records_99_are_within_a_millisecond(
    records: list[Both], column: str, name: str, sign: int
) -> None:
    assert _percentile((sign * (times[name] - row[column]) for times, row in records), 99) <= MILLISECOND


@pytest.mark.parametrize("percent", [50, 99])
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("acknowledged_time", "acknowledged_us"),
        ("fetched_time", "polled_us"),
        ("committed_time", "committed_us"),
    ],
)
def test_percentiles_of_a_setting_are_those_of_its_clients(
    records: list[Both], topic: str, column: str, name: str, percent: int
) -> None:
    """Since send; of a batch the record that was sent last, whose time it has."""
    own = [(times, row) for times, row in records if row["topic"] == topic and times is _last(row, records)]
    clients = _percentile((times[name] - times["sent_us"] for times, _ in own), percent)
    assert abs(clients - _percentile((row[column] - row["record_time"] for _, row in own), percent)) <= (
        MILLISECOND
    )


def test_settings_show_in_the_steps(rows: list[dict[str, Any]]) -> None:
    """linger.ms puts records together; only their end makes records of transactions stable."""
    batches = {topic: [row for row in rows if row["topic"] == topic] for topic in TOPICS}
    assert len(batches["gathered"]) < len(batches["plain"]) == 40
    shown = {
        topic: {row["visible_call_id"] == row["produced_call_id"] for row in own}
        for topic, own in batches.items()
    }
    assert shown["transactions"] == shown["waiting"] == {False}  # read_committed; acks=1
    assert True in shown["plain"]
