"""Stalls of recordings: the cause is what was done, and no time counts twice."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import kwsniff
from tests.house.tree import ROOT
from tests.pipeline.stalls import LOST, TRUTH, judge

RECORDED = [[path] for path in sorted((ROOT / "captures").rglob("*.pcap*"))]
PAIRS = [
    [path, path.with_name("broker.pcap")]
    for path in sorted((ROOT / "captures").glob("*/*/client.pcap"))
    if path.with_name("broker.pcap").exists()
]
TWO_PLACES = ("incidents/window_of_the_broker", "incidents/nagle_stall", "incidents/healthy_bulk_far")


def named(paths: list[Path]) -> str:
    return "-".join((paths[0].parent.name, *(path.stem for path in paths)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", TRUTH)
def test_of_the_stalled_time_95_percent_have_the_right_cause(recording: str) -> None:
    judged = judge(recording)
    assert judged
    assert [(each.place, each.right) for each in judged if each.right < 0.95] == []
    mainly = LOST if TRUTH[recording] == LOST else TRUTH[recording][:1]
    assert {each.main for each in judged} <= {*mainly}


@pytest.mark.parametrize("recording", TWO_PLACES)
def test_two_places_tell_the_same(recording: str) -> None:
    """The sender's side and the receiver's: for each cause within 5 % of the stalled time."""
    at_client, at_broker = judge(recording)
    longer = max(at_client.total, at_broker.total)
    for cause in at_client.causes | at_broker.causes:
        assert abs(at_client.causes[cause] - at_broker.causes[cause]) <= 0.05 * longer, cause


@pytest.mark.sample(6)
@pytest.mark.parametrize("paths", [*RECORDED, *PAIRS], ids=named)
def test_stalls_of_a_call_are_part_of_its_transmission_and_network_time(paths: list[Path]) -> None:
    """Of one place and, where the network time is measured, of two."""
    run = kwsniff.analyze(paths, tables=["stalls", "latencies"])
    with duckdb.connect() as database:
        database.register("stalls", run.stalls)
        database.register("latencies", run.latencies)
        found = database.execute(
            """
            with per_call as (select call_id, sum(duration_ns) as stalled from stalls group by call_id)
            select call_id from latencies left join per_call using (call_id)
            where coalesce(stalled, 0) > request_transmission_ns + network_ns + response_transmission_ns
                or (stalled is null) <> (transmission_stall is null)
            """
        ).fetchall()
        overlapping = database.execute(
            """
            with stretch as (
                select *, epoch_us(start_time) as since, since + duration_ns // 1000 as until from stalls
            )
            select a.last_frame from stretch a join stretch b using (connection_id, direction)
            where a.since < b.since and a.until > b.since + 2
            """
        ).fetchall()
    assert (found, overlapping) == ([], [])
