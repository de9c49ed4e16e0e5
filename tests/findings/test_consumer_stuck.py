"""A reader that stays at one offset although there is more, and readers beside it that wait or advance."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kwsniff.findings.prefilter.figures import Figures
from tests.findings.scripted import table_of
from tests.findings.stage import Stage
from tests.traffic import membership, messages, records
from tests.traffic.tcp import MILLISECOND, Endpoint

RECORDS = records.batch([b"v" * 40] * 3)
PORT = 9094
BROKER = Endpoint("10.1.0.93", PORT)


def read(
    folder: Path,
    offsets: Sequence[int],
    data: bytes = b"",
    *,
    every: int = 300 * MILLISECOND,
    in_group: bool = False,
    partitions: Mapping[str, Mapping[int, bytes]] | None = None,
    **fetch: Any,
) -> Stage:
    """A client that fetches these offsets, one after the other; -1: the fetch session has none to name."""
    stage = Stage(folder)
    script = stage.scene.connection(Endpoint("10.1.0.7", 51_000), BROKER)
    script.open()
    fetch = dict[str, Any](version=11, client_id="auditor") | fetch
    for number, offset in enumerate(offsets, 1):
        moment = number * every
        listed = partitions or {"orders": {0: data}}
        if offset < 0:
            call = messages.fetch(correlation_id=number, batches={}, news=listed, **fetch)
        else:
            call = messages.fetch(correlation_id=number, batches=listed, offset=offset, **fetch)
        script.call(call, at=moment, answer_at=moment + 2 * MILLISECOND)
        if in_group:
            beat = membership.beat(
                1000 + number, "audit", member="auditor-1", generation=3, client_id="auditor"
            )
            script.call(beat, at=moment + 10 * MILLISECOND, answer_at=moment + 12 * MILLISECOND)
    script.close(at=(len(offsets) + 1) * every)
    return stage


def stuck(stage: Stage) -> list[tuple[str, str, int]]:
    """Who is to blame, which partition, how many fetches."""
    return [
        (row["blames"], row["subject"], row["calls"])
        for row in stage.rows()
        if row["finding"] == "consumer_stuck"
    ]


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_reader_that_gets_nothing_below_the_high_watermark_is_stuck(version: int, tmp_path: Path) -> None:
    assert stuck(read(tmp_path, [500] * 15, version=version)) == [("broker", "orders-0", 15)]


def test_what_is_shown_is_the_offset_and_how_far_the_log_goes(tmp_path: Path) -> None:
    (row,) = (each for each in read(tmp_path, [500] * 15).rows() if each["finding"] == "consumer_stuck")
    assert row["value"] == pytest.approx(14 * 0.3 + 0.002, abs=0.01)
    for words in ("auditor", "orders-0", "offset 500", "15 times", "to offset 1000"):
        assert words in row["text"]
    assert len(row["call_ids"]) == 15
    assert "orders-0" in row["command"]


def test_a_fetch_session_that_names_the_offset_once_is_stuck_likewise(tmp_path: Path) -> None:
    stage = read(tmp_path, [500] + [-1] * 14, session=(7, 3), opened=7)
    assert stuck(stage) == [("broker", "orders-0", 15)]


def test_partitions_of_one_topic_make_one_finding(tmp_path: Path) -> None:
    stage = read(tmp_path, [500] * 15, partitions={"orders": {0: b"", 1: b"", 2: b""}})
    (row,) = (each for each in stage.rows() if each["finding"] == "consumer_stuck")
    assert "likewise on 2 more partitions of orders" in row["text"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("offsets", "fetch"),
    [
        # At the end of the log, and beyond what is committed.
        ([1000] * 15, {}),
        ([999] * 15, {"isolation": 1}),
        # It waits for a quota.
        ([500] * 15, {"throttle_ms": 300}),
        # Too few, or within too short a time.
        ([500] * 9, {}),
        ([500] * 15, {"every": 100 * MILLISECOND}),
        # It is refused.
        ([500] * 15, {"errors": {("orders", 0): 6}}),
        # Another partition filled the response.
        ([500] * 15, {"partitions": {"orders": {0: b"", 1: RECORDS}}}),
        # A follower.
        ([500] * 15, {"replica": 2}),
        # It advances.
        ([*range(500, 515)], {}),
        # It is stuck no more after nine.
        ([500] * 9 + [501] * 9, {}),
    ],
)
def test_a_reader_that_waits_rightly_is_not_stuck(
    offsets: Sequence[int], fetch: dict[str, Any], tmp_path: Path
) -> None:
    stuck_on_0 = [each for each in stuck(read(tmp_path, offsets, **fetch)) if each[1] == "orders-0"]
    assert stuck_on_0 == []


@pytest.mark.parametrize("in_group", [False, True])
def test_a_reader_that_gets_the_same_records_again_and_again_is_stuck(in_group: bool, tmp_path: Path) -> None:
    offsets = [500, 503] * 7
    found = stuck(read(tmp_path, offsets, RECORDS, in_group=in_group))
    assert [each[::2] for each in found] == [("client", 7)]


def test_a_member_of_a_group_that_stays_at_the_first_record_is_stuck(tmp_path: Path) -> None:
    assert stuck(read(tmp_path, [0] * 12, RECORDS, in_group=True)) == [("client", "orders-0", 12)]


@pytest.mark.parametrize(
    ("offsets", "every"),
    [
        # A table that is loaded from its start each time.
        ([0] * 12, 300),
        # A reader that looks up records here and there, some of them more than once.
        ([500, 10, 620, 30, 40, 500, 61, 72, 83, 500, 94, 15, 26, 500, 37, 48, 59, 500, 61, 72, 83, 94], 300),
        # All within a second.
        ([500] * 12, 50),
        # Twice, and further.
        ([number for number in range(500, 520) for _ in range(2)], 300),
    ],
)
def test_a_reader_that_returns_for_a_reason_is_not_stuck(
    offsets: Sequence[int], every: int, tmp_path: Path
) -> None:
    assert stuck(read(tmp_path, offsets, RECORDS, every=every * MILLISECOND)) == []


def _figures(rows: Sequence[Mapping[str, Any]]) -> Figures:
    figures = Figures()
    for batch in table_of("partitions", rows).to_batches():
        figures.add("partitions", batch)
    return figures


def test_figures_of_reads_are_counted_by_hand() -> None:
    moments = itertools.count(0, 1_000_000)

    def row(offset: int | None, size: int, records: int, end: int | None = 1000) -> dict[str, Any]:
        return {
            "run_id": "run", "call_id": 1, "time": next(moments), "connection_id": 4,
            "api_name": "Fetch", "partition": 0,
            "requested_offset": offset, "record_bytes": size, "record_count": records, "high_watermark": end,
        }  # fmt: skip

    rows = [row(5, 10, 1), row(5, 10, 1), row(6, 10, 1), row(None, 10, 1)]  # twice 5, and one unnamed
    rows += [row(7, 0, 0), row(None, 0, 0), row(1000, 0, 0), row(8, 90, 0), row(9, 0, 0, end=None)]
    found = _figures(rows).as_dict()
    assert (found["repeated_reads"], found["repeated_beyond_start"], found["empty_beyond"]) == (2, 2, 2)
    assert _figures(rows[:3]).as_dict()["repeated_reads"] == 0  # within two seconds
    added = _figures(rows[:1])
    added.merge(_figures(rows[1:]).state())
    assert added.as_dict()["repeated_reads"] == 2
