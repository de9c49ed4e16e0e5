"""What the summary says calls spent their time with, and where the capture was taken."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.summary.summary import show_summary
from tests.pipeline.test_latency import DATA, EMPTY, heartbeat
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.files import frames, pcap
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Scene

MS = MILLISECOND
FAR = 80 * MS
CAPTURES = Path(__file__).parents[2] / "captures"


def told(folder: Path, scene: Scene) -> str:
    path = folder / "capture.pcap"
    path.write_bytes(pcap(frames(scene.packets()), nanoseconds=True))
    summary = kwsniff.analyze(path).summary
    out = io.StringIO()
    show_summary({**summary, "tables": {}}, out, top=10)
    return out.getvalue()


def mostly(text: str, api: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith(f"  API     {api}"))
    return " ".join(line.split()[-8:])


def test_a_far_client_is_told_as_network(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open(round_trip_ns=FAR)
    for number in range(1, 4):
        script.call(heartbeat(number), at=number * 1000 * MS, answer_at=number * 1000 * MS + FAR + MS)
    text = told(tmp_path, scene)
    assert "captured at or near the client" in text
    assert mostly(text, "Heartbeat").endswith("99 % network")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("call", "took_ms", "words"),
    [
        (messages.fetch(11, 1, EMPTY), 501, "waiting for data"),
        (messages.fetch(11, 1, DATA), 101, "possibly waiting for data"),
        (messages.produce(9, 1, DATA, errors={("orders", 0): 7}), 300, "waiting for replicas"),
        (messages.produce(9, 1, DATA), 300, "broker, or its replicas"),
        (messages.produce(9, 1, DATA, acks=1), 300, "broker"),
        (groups.join_group(7, 1, "g"), 3010, "waiting for members"),
        (groups.sync_group(5, 1, "g"), 400, "possibly waiting for members"),
        (messages.produce(5, 1, DATA, throttle_ms=200), 201, "waiting for a quota"),
    ],
)
def test_waits_are_told_by_what_was_waited_for(
    call: Exchange, took_ms: int, words: str, tmp_path: Path
) -> None:
    scene = Scene()
    script = scene.connection()
    script.open(round_trip_ns=20 * MICROSECOND)
    script.call(call, at=10 * MS, answer_at=(10 + took_ms) * MS)
    text = told(tmp_path, scene)
    (line,) = (line for line in text.splitlines() if line.startswith("  client  shop-1"))
    assert line.endswith(f"% {words}")


def test_time_in_line_is_told_by_what_the_first_in_line_waited_for(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open(round_trip_ns=20 * MICROSECOND)
    script.call(messages.fetch(11, 1, EMPTY), at=10 * MS, answer_at=511 * MS)
    script.call(heartbeat(2), at=11 * MS, answer_at=512 * MS)
    assert mostly(told(tmp_path, scene), "Heartbeat").endswith("queued behind a fetch waiting for data")


@pytest.mark.parametrize(("near", "taken"), [(7, True), (2, False)])
def test_one_odd_connection_does_not_speak_for_a_capture(near: int, taken: bool, tmp_path: Path) -> None:
    scene = Scene()
    for number in range(near + 1):
        script = scene.connection()
        script.open(round_trip_ns=FAR if number else 20 * MICROSECOND)
        script.call(heartbeat(1), at=1000 * MS, answer_at=1100 * MS)
    text = told(tmp_path, scene)
    assert ("captured at or near the client" in text) == taken
    assert "both client and broker" not in text


NO_FINDING = "No findings: no rule of `kwsniff why` matches; see errors and slowest calls above"


@pytest.mark.parametrize(
    ("capture", "tables", "says"),
    [
        ("idle/capture.pcap", None, True),
        ("idle/capture.pcap", ("api_calls", "latencies"), False),  # nobody judged
        ("throttled/capture.pcap", None, False),
        ("tls_1_3/capture.pcap", None, False),  # no call was seen
    ],
)
def test_a_summary_says_where_no_rule_fits(capture: str, tables: tuple[str, ...] | None, says: bool) -> None:
    found = kwsniff.analyze(CAPTURES / capture, tables=tables)
    out = io.StringIO()
    show_summary({**found.summary, "tables": {}}, out, top=10)
    assert (NO_FINDING in out.getvalue().splitlines()) == says
