"""Rebalances while they last, and when they are over: against the brokers' log and the table of groups."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.live.lines import in_words
from kwsniff.layout.catalog import load_catalog
from kwsniff.live.overdue_responses import OverdueResponses, Wait
from kwsniff.live.rebalances import Rebalancing, UnderWay
from kwsniff.live.session import Session
from kwsniff.timelines.groups.rebalances import Standing

from .running import PATIENCE_S, ROOT, FileSource
from .test_findings import INCIDENTS, packets
from .test_overdue_responses import Cut

S = 1_000_000_000
CAPTURES = [
    ROOT / "captures" / name
    for name in (
        "incidents/rebalance_storm/broker.pcap",
        "incidents/healthy_rolling/broker.pcap",
        "incidents/session_expired/broker.pcap",
        "rebalance/capture.pcap",
    )
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_in_the_end_they_are_those_of_the_table(path: Path) -> None:
    expected = kwsniff.analyze(path).groups.to_pylist()
    with Session(FileSource(path, pieces=500)) as session:
        rebalancing = Rebalancing(load_catalog(), session.standing)
        while not session.wait(0.001):
            rebalancing.add(session.drain())
        rebalancing.add(session.finish())
    wanted = [(row["group_id"], row["generation"], row["calls"]) for row in expected]
    assert len(wanted) < 100
    assert sorted(map(str, wanted)) == sorted(
        str((row["group_id"], row["generation"], row["calls"])) for row in rebalancing.over
    )
    assert rebalancing.count == len(expected)


def test_one_is_over_when_the_last_member_got_its_part() -> None:
    """Cut right behind the last answer to SyncGroup: the table would tell of it later."""
    path = INCIDENTS / "healthy_rolling" / "broker.pcap"
    analysis = kwsniff.analyze(path)
    calls = analysis.api_calls.to_pandas()
    row = next(row for row in analysis.groups.to_pylist() if row["member_count"] > 1)
    syncs = calls[(calls["api_name"] == "SyncGroup") & (calls["group_id"] == row["group_id"])]
    chosen = syncs[(syncs["response_end_time"] <= row["end_time"]) & (syncs["error_code"] == 0)]
    last = int(chosen.sort_values("response_end_time")["response_end_frame"].iloc[-1])
    places = [at for at, _ in packets(path.read_bytes())]
    for cut, told in ((places[last - 1], False), (places[last], True)):
        with Session(Cut(path, cut, 0)) as session:
            assert session.wait(PATIENCE_S)
            rebalancing = Rebalancing(load_catalog(), session.standing)
            rebalancing.add(session.drain())
            ended = {(each["group_id"], each["generation"]) for each in rebalancing.over}
            assert ((row["group_id"], row["generation"]) in ended) == told


def wait(api_key: int, member: str, asked: int) -> Wait:
    return Wait(
        1, api_key, 5, None, member, "10.0.0.1", 4, "10.0.0.9", 9092, asked, asked, "billing", member, ()
    )


def test_who_waits_and_who_has_not_come_is_told() -> None:
    """Two of three members that are known have joined again."""
    known = frozenset({"billing-1", "billing-2", "billing-3"})
    rebalancing = Rebalancing(load_catalog(), lambda group: Standing(known, known, None))
    overdue = OverdueResponses(
        now=100 * S, joins=(wait(11, "billing-1", 88 * S), wait(11, "billing-3", 90 * S))
    )
    rebalancing.add_waiting(overdue)
    (each,) = rebalancing.under_way
    assert each == UnderWay("billing", 88 * S, "join", ("billing-1", "billing-3"), ("billing-2",))
    assert in_words(each, overdue.now) == "billing for 12 s, waits for billing-2 (2 members there)"


def test_a_leader_that_gives_no_parts_out_is_told() -> None:
    joined = frozenset({"a-00000000-0000-0000-0000-000000000001", "b"})
    row = {"begin_time": 80 * S, "generation": 4}
    rebalancing = Rebalancing(load_catalog(), lambda group: Standing(joined, joined, row))
    rebalancing.add_waiting(OverdueResponses(now=100 * S, joins=(wait(14, "b", 99 * S),)))
    (each,) = rebalancing.under_way
    assert (each.phase, each.since, each.waiting, each.missing) == ("sync", 80 * S, ("b",), ("a",))


def test_what_has_just_begun_is_not_told() -> None:
    rebalancing = Rebalancing(load_catalog(), lambda group: None)
    rebalancing.add_waiting(OverdueResponses(now=100 * S, joins=(wait(11, "b", 100 * S - S // 2),)))
    assert rebalancing.under_way == ()
