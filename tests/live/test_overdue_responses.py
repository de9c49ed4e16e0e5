"""Who owes answers: told while they are due, by everything that could be the trouble, and of nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kwsniff
from kwsniff.cli.live.header import wrong
from kwsniff.cli.live.lines import IntervalLines, interval_json, interval_line, overdue_words
from kwsniff.cli.live.loop import TICK_S
from kwsniff.cli.live.model import ViewState
from kwsniff.cli.live.pages import page
from kwsniff.live.overdue_responses import (
    GRACE_NS,
    Drops,
    Overdue,
    OverdueResponses,
    Wait,
    grace_of,
    not_lost,
)
from kwsniff.live.session import Progress, Session
from kwsniff.live.window import Window
from kwsniff.sources.capture_tools import Recorder

from .running import PATIENCE_S, FileSource
from .test_findings import INCIDENTS, packets

STALLED = INCIDENTS / "broker_stalled" / "broker.pcap"


class Cut(FileSource):
    """A capture up to a packet, and the clock of whoever looks then."""

    def __init__(self, path: Path, cut: int, now_ns: int) -> None:
        self.data = path.read_bytes()[:cut]
        self.now_ns = now_ns
        super().__init__(path)

    def _write(self, path: Path, pieces: int) -> None:
        with self._in:
            self._in.send(self.data)

    def find_watermark(self, read: int, last: int | None, silent_ns: int) -> int | None:
        return self.now_ns


def overdue_at(path: Path, moment: float) -> OverdueResponses:
    """What is overdue at a time (seconds since the epoch), after every packet before it."""
    cut = next((at for at, time in packets(path.read_bytes()) if time >= moment), path.stat().st_size)
    with Session(Cut(path, cut, round(moment * 1e9))) as session:
        assert session.wait(PATIENCE_S)
        session.drain()
        return session.find_overdue()


def seconds(times: pd.Series[Any]) -> pd.Series[Any]:
    return (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)


def longest_of(calls: pd.DataFrame) -> pd.Series[Any]:
    """The call that was answered last after it was asked, deliberate waits left out."""
    chosen = calls[~calls["api_name"].isin(["Fetch", "JoinGroup", "SyncGroup"])]
    at = int(chosen["latency_ns"].to_numpy(float, na_value=0.0).argmax())
    found: pd.Series[Any] = chosen.iloc[at]
    return found


def moments(path: Path, step: float = 0.25) -> Iterator[float]:
    times = [time for _, time in packets(path.read_bytes())]
    moment = times[0]
    while moment < times[-1]:
        yield moment
        moment += step


def test_a_broker_that_stands_still_is_named_within_a_second() -> None:
    """Against the table: calls that were answered late, and calls that never were."""
    calls = kwsniff.analyze(STALLED).api_calls.to_pandas()
    longest = longest_of(calls)
    assert longest["latency_ns"] > 2e9, "the recording is of a broker that was stopped for 3 s"
    asked = longest["request_time"].timestamp()
    before, after = overdue_at(STALLED, asked + 0.5), overdue_at(STALLED, asked + 1.0)
    broker = f"{longest['broker_address']}:{longest['broker_port']}"
    assert broker not in before.by_dimension["brokers"]
    assert after.worst("brokers")[0][0] == broker
    assert longest["client_id"] in after.by_dimension["clients"]
    assert after.total.oldest_ns >= GRACE_NS
    assert "broker" not in overdue_words(before)
    assert broker in overdue_words(after)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["healthy_idle", "healthy_bursts", "healthy_rolling", "healthy_three_brokers", "healthy_far"]
)
def test_of_a_healthy_one_nothing_is_owed_at_any_time(name: str) -> None:
    path = INCIDENTS / name / "broker.pcap"
    calls = kwsniff.analyze(path).latencies.to_pandas()
    slow = calls[calls["total_ns"] - calls["deliberate_wait_ns"] > GRACE_NS]
    for moment in moments(path):
        overdue = overdue_at(path, moment)
        late = slow[seconds(slow["request_time"]) <= moment]
        assert len(late) or not overdue.total.calls, (moment, overdue)


def test_every_call_that_is_due_is_counted_once_for_each_it_concerns() -> None:
    """By hand from the table of calls, for a moment in the middle of the stall."""
    calls = kwsniff.analyze(STALLED).api_calls.to_pandas()
    longest = longest_of(calls)
    moment = longest["request_time"].timestamp() + 2.0
    overdue = overdue_at(STALLED, moment)
    asked, over = (seconds(calls[name]) for name in ("request_time", "response_end_time"))
    waits = calls[(asked < moment) & ~(over < moment) & (calls["acks"].fillna(-1) != 0)]
    due = waits[asked[waits.index] <= moment - GRACE_NS / 1e9]
    by_api = due[due["api_name"] != "Fetch"].groupby("api_name").size()  # those may wait for data
    assert by_api.sum() > 2
    assert {api: overdue.by_dimension["apis"][api].calls for api in by_api.index} == dict(by_api)
    assert {*overdue.by_dimension["apis"]} - {"Fetch"} == {*by_api.index}
    assert sum(overdue.calls for overdue in overdue.by_dimension["brokers"].values()) == overdue.total.calls
    assert sum(overdue.calls for overdue in overdue.by_dimension["apis"].values()) == overdue.total.calls
    assert sum(overdue.calls for overdue in overdue.by_dimension["clients"].values()) == overdue.total.calls


def test_an_answer_that_may_have_passed_unseen_is_not_owed() -> None:
    """One direction of a capture alone: nothing of the broker is seen, so nothing is said of it."""
    path = INCIDENTS / "healthy_bursts" / "broker.pcap"
    data = path.read_bytes()
    ports = set(kwsniff.analyze(path).connections["broker_port"].to_pylist())
    kept = bytearray(data[:24])
    places = [at for at, _ in packets(data)] + [len(data)]
    for at, end in pairwise(places):
        if not any(port.to_bytes(2, "big") == data[at + 16 + 34 : at + 16 + 36] for port in ports):
            kept += data[at:end]
    cut = path.parent / "nothing"
    with Session(_Bytes(cut, bytes(kept))) as session:
        assert session.wait(PATIENCE_S)
        session.drain()
        assert session.progress().packets > 10
        assert session.find_overdue().total.calls == 0


def wait(broker: int, port: int, asked: int) -> Wait:
    return Wait(
        asked, 0, 9, "client", "shop", "10.0.0.9", port, "10.0.0.1", broker, asked, asked, None, None, ()
    )


def test_nobody_owes_what_the_kernel_may_have_dropped() -> None:
    """Two packets dropped at 100: at most two connections lost their answers, or their ends."""
    drops = Drops()
    for total, now in ((None, 50), (0, 60), (2, 100), (2, 110)):
        drops.set_count(total, now)
    assert [drops.since(moment) for moment in (99, 100, 101)] == [2, 2, 0]
    later = [wait(9092, 1, 101)]
    two = [wait(9093, 1, 90), wait(9093, 2, 91), wait(9093, 2, 92)]
    three = [wait(9094, port, 95) for port in (1, 2, 3)]
    kept = not_lost([*later, *two, *three], drops.since)
    assert sorted(kept) == sorted([*later, *three])
    assert not_lost([*two, wait(9093, 3, 101)], drops.since) == [wait(9093, 3, 101), *two[::-1]]


def test_what_is_known_of_drops_is_bounded_and_nothing_is_forgotten() -> None:
    drops = Drops()
    for turn in range(1, 5000):
        drops.set_count(turn, turn)
    assert drops.since(0) == 4999
    assert drops.since(4990) == 10
    assert len(drops._known) < 1000


@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_a_broker_that_hangs_is_named_within_two_seconds(tool: str) -> None:
    """By arithmetic: the way of its last packets, how late it must be, and the loop that looks."""
    recorder = object.__new__(Recorder)
    recorder.tool = tool
    assert recorder.delay_ns + grace_of(recorder.delay_ns) + TICK_S * 1e9 < 2e9


def test_a_line_is_there_at_once_when_a_broker_begins_to_owe(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines every hour: one as soon as a broker owes an answer, and no more while it does."""
    window = Window()
    lines = IntervalLines(window, 3600.0)
    progress = Progress(1, 2, 3, None, None, None)
    told = []
    for brokers in ((), ("a",), ("a",), ("a", "b"), (), ("b",)):
        window.overdue = OverdueResponses(1, total=Overdue(len(brokers), 10**9))
        window.overdue.by_dimension["brokers"] = {name: Overdue(1, 10**9) for name in brokers}
        lines.show({}, progress, last=False)
        told.append(capsys.readouterr().out.count("LATE"))
    assert told == [0, 1, 0, 1, 0, 0]


class _Bytes(Cut):
    def __init__(self, path: Path, data: bytes) -> None:
        self.data = data
        self.now_ns = 1 << 62
        FileSource.__init__(self, path)


def test_it_stands_first_in_view_lines_and_json() -> None:
    calls = kwsniff.analyze(STALLED).api_calls.to_pandas()
    longest = longest_of(calls)
    overdue = overdue_at(STALLED, longest["request_time"].timestamp() + 1.5)
    window = Window()
    window.overdue = overdue
    broker, late = overdue.worst("brokers")[0]
    assert wrong(window, 200)[0].plain.startswith("LATE")
    assert broker in wrong(window, 200)[0].plain
    for name in ("brokers", "overview"):
        assert broker in _text(window, ViewState(page=name))
    with Session(FileSource(STALLED)) as session:
        progress = session.progress()
    assert f"LATE {overdue.total.calls} response" in interval_line(window, progress)
    told = json.loads(interval_json(window, progress))
    assert told["owed"] == overdue.total.calls
    assert told["owed_by_broker"][0] == {
        "broker": broker,
        "calls": late.calls,
        "oldest_ns": late.oldest_ns,
    }


def _text(window: Window, state: ViewState) -> str:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=120, height=40).print(page(window, state, 30, 120))
    return out.getvalue()


def test_who_stands_in_line_behind_a_long_poll_is_owed_nothing_yet() -> None:
    """A recording in which a consumer asks for offsets behind its own Fetch, which waits for data."""
    path = INCIDENTS / "rebalance_storm" / "broker.pcap"
    calls = kwsniff.analyze(path).latencies.to_pandas()
    behind = calls[(calls["api_name"] == "ListOffsets") & (calls["queue_wait_ns"] > GRACE_NS)]
    assert len(behind)
    for _, call in behind.iterrows():
        asked = float(seconds(pd.Series([call["request_time"]])).iloc[0])
        assert (
            "ListOffsets"
            not in overdue_at(path, asked + call["queue_wait_ns"] / 1e9 - 0.01).by_dimension["apis"]
        )
