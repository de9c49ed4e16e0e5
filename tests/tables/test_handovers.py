"""What a rebalance costs, by the question `rebalances`, against members that noted their callbacks."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.house.tree import ROOT

RECORDED = ROOT / "captures" / "handovers"
Row = Mapping[str, Any]


@dataclass
class Handover:
    """Of one partition, as applications and the producer noted it; microseconds."""

    revoked: int
    assigned: int
    polled: int | None = None
    """The first record that came then."""
    again: int = 0
    appended: list[int] = field(default_factory=list)
    """Records acknowledged by `assigned`, and by `polled`."""


def noted() -> list[Row]:
    with (RECORDED / "handovers.tsv").open(newline="") as file:
        return [
            {**row, **{name: int(row[name] or -1) for name in ("us", "partition", "offset")}}
            for row in csv.DictReader(file, delimiter="\t")
        ]


def handovers(group: str) -> dict[int, dict[int, Handover]]:
    """Partitions by handover, those first that were assigned first; handovers a second apart are others."""
    lines = noted()
    acknowledged = [line for line in lines if line["did"] == "acknowledged"]
    revoked: dict[int, int] = {}
    known: set[tuple[int, int]] = set()
    under_way: dict[int, Handover] = {}
    found: list[tuple[int, int, Handover]] = []
    for line in (line for line in lines if line["group"] == group):
        partition, at = line["partition"], line["us"]
        if line["did"] == "revoked":
            revoked[partition] = at
            under_way.pop(partition, None)
        elif line["did"] == "assigned" and partition in revoked:
            under_way[partition] = Handover(revoked[partition], at)
            found.append((at, partition, under_way[partition]))
        elif line["did"] == "polled":
            if one := under_way.get(partition):
                one.polled = one.polled or at
                one.again += (partition, line["offset"]) in known
            known.add((partition, line["offset"]))
    together: dict[int, dict[int, Handover]] = {}
    for at, partition, one in sorted(found, key=lambda each: each[:2]):
        begin = next((begin for begin in together if at - begin < 500_000), at)
        together.setdefault(begin, {})[partition] = one
        for until in (one.assigned, one.polled or one.assigned):
            seen = [line for line in acknowledged if one.revoked < line["us"] <= until]
            one.appended.append(sum(line["partition"] == partition for line in seen))
    return together


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("handovers")
    kwsniff.analyze(RECORDED / "capture.pcap", output=folder)
    rows: list[Row] = kwsniff.sql(folder, question="rebalances").to_pylist()
    return [row for row in rows if row["partitions"]]


@pytest.mark.parametrize("group", ["billing", "audit"])
def test_partitions_stop_as_long_as_the_callbacks_of_members_are_apart(told: list[Row], group: str) -> None:
    """Until the first Fetch, which is between the callback and the first record."""
    rows, true = [row for row in told if row["group_id"] == group], handovers(group)
    assert len(rows) == len(true) == 2
    for row, partitions in zip(rows, true.values(), strict=True):
        assert row["partitions"] == len(partitions)
        assert max(one.assigned - one.revoked for one in partitions.values()) // 1000 - 1 <= row["stopped_ms"]
        longest = max(one.polled - one.revoked for one in partitions.values() if one.polled)
        assert row["stopped_ms"] <= longest // 1000 + 1


@pytest.mark.parametrize("group", ["billing", "audit"])
def test_records_that_members_polled_again_are_counted(told: list[Row], group: str) -> None:
    again = [sum(one.again for one in each.values()) for each in handovers(group).values()]
    assert [row["fetched_again"] for row in told if row["group_id"] == group] == again
    assert sum(again) > 5


@pytest.mark.parametrize("group", ["billing", "audit"])
def test_lag_grows_by_what_was_appended_meanwhile(told: list[Row], group: str) -> None:
    """Give or take one record per partition, under way when the partition stopped or began again."""
    rows = [row for row in told if row["group_id"] == group]
    for row, partitions in zip(rows, handovers(group).values(), strict=True):
        least, most = (sum(one.appended[place] for one in partitions.values()) for place in (0, 1))
        assert least - len(partitions) <= row["lag_added"] <= most + len(partitions)
    assert sum(row["lag_added"] for row in rows) > 2


def test_a_member_that_is_killed_stops_its_partitions_until_its_session_expires(tmp_path: Path) -> None:
    """tests/broker/network: killed, with session.timeout.ms=6000; noticed and taken over then."""
    kwsniff.analyze(ROOT / "captures" / "incidents" / "member_killed" / "broker.pcap", output=tmp_path)
    (row,) = (
        row
        for row in kwsniff.sql(tmp_path, question="rebalances").to_pylist()
        if row["reason"] == "session_expired"
    )
    assert row["stopped_ms"] > 4_000


def test_a_group_that_begins_stops_nothing(tmp_path: Path) -> None:
    kwsniff.analyze(ROOT / "captures" / "incidents" / "healthy_first_group" / "broker.pcap", output=tmp_path)
    rows = kwsniff.sql(tmp_path, question="rebalances").to_pylist()
    assert rows
    assert {row["stopped_ms"] for row in rows if row["generation"] == 1} == {None}


def test_why_has_cause_and_cost_of_each_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", str(RECORDED / "capture.pcap"), "--all"]) == 0
    listed = capsys.readouterr().out.partition("Rebalances whose partitions stopped longest:")[2].splitlines()
    (line,) = (line.split() for line in listed if "metadata_change" in line)
    (one,) = (
        each
        for each in handovers("audit").values()
        if all(p.assigned - p.revoked > 1e6 for p in each.values())
    )
    assert line[0] == "audit"
    assert line[-2] == str(sum(each.again for each in one.values()))
