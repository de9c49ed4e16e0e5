"""Where the time of a call went: kwsniff's parts against the brokers' own clocks and the relay's distance.

`python -m tests.pipeline.clocks [RECORDING...] [--each]` prints, per recording of captures/clocks and side,
how many calls agree in each part, and why the others do not (explained.py); with `--each` also every one of
them. A part agrees if it is within 2 ms or 15 % of its witness, whichever is more:

    part      kwsniff (DESIGN 8.4)     witness
    wait      deliberate_wait_ns       remote time of calls that wait for others by their nature; and how long
                                       the connection was still muted for the quota of the call before; of
                                       an authentication that fails, the delay that the broker is told to
                                       make, and up to 300 ms until it looks again
    waited    the same                 of calls that waited 100 ms and more by their witness: the rest is easy
    word      wait, of those           what such a call waits for, by its API and by what it brought; with or
                                       without `_possible`
    broker    broker_ns                time in the request queue, local, in the response queue, send; of calls
                                       that wait for nobody also remote: threads of the coordinator
    both      broker_ns                of Produce that says `replicas_possible`: all parts and the remote one;
                                       nothing that was captured splits them, so they count here alone
    network   network_ns               at the client, the relay's round trip, and at most what the call took
                                       longer there than beside the broker; at the broker, 0; calls in which
                                       nothing was sent again
    lost      network_ns and both      of calls in which something was sent again, how much longer they took
              transmissions            at the client than beside the broker
    line      queue_wait_ns            queue_wait_ns of the same call beside the broker
    behind    behind                   of calls that stood in line for 2 ms and more beside the broker: a call
                                       before them on their connection that was not answered yet

The log's clock begins when a request has been read and ends when its answer has been written, so what a
request waits behind another on its connection is in no part of it, and neither is how long a broker that has
no processor lets it lie: calls for whose time beside the broker the log has no explanation are counted as
`unread`, and do not count for `broker`. Since KIP-219 a broker over quota answers first and mutes then. A
column that kwsniff does not write yet agrees with nobody.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.broker.requestlog import Logged, read
from tests.pipeline.compare import Row, Tables, decoded

CLOCKS = Path(__file__).parents[2] / "captures" / "clocks"
NAMES: list[str] = sorted(path.parent.name for path in CLOCKS.glob("*/about.toml"))
SIDES: tuple[str, ...] = ("client", "broker")
PARTS = ("wait", "waited", "word", "broker", "both", "network", "lost", "line", "behind", "unread")
WAITING = {0, 1, 11, 14, 78}  # Produce, Fetch, JoinGroup, SyncGroup, ShareFetch
WITHIN_US, WITHIN = 2_000, 0.15
LONG_US = 100_000
SASL_AUTHENTICATE = 36
LOOKS_AGAIN_MS = 300
WORDS = {0: "replicas", 11: "group", 14: "group", 36: "authentication_delay"}
RIGHT, WRONG = 0.0, float("inf")  # what stands for a name as its witness says, or another; 0 is the witness
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Compared:
    """One part of one call: what kwsniff says and what its witness says, in microseconds."""

    part: str
    side: str
    row: Row  # of api_calls, with its latencies
    ours: float | None
    theirs: float

    @property
    def agrees(self) -> bool:
        return self.ours is not None and abs(self.ours - self.theirs) <= tolerated(self.theirs)


def tolerated(theirs_us: float) -> float:
    return max(WITHIN_US, WITHIN * theirs_us)


@cache
def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CLOCKS / name / "about.toml").read_text("utf-8"))


@cache
def tables(name: str, side: str) -> Tables:
    return decoded(CLOCKS / name / about(name)["files"][side])


@cache
def logged(name: str) -> list[Logged]:
    return read(CLOCKS / name / about(name)["witness"])


@cache
def witness(name: str) -> dict[tuple[Any, ...], Logged]:
    return {identity(line): line for line in logged(name) if not line.forwarded}


def identity(row: Any) -> tuple[Any, ...]:
    get = row.get if isinstance(row, dict) else lambda key: getattr(row, key)
    return (get("broker_port"), get("client_port"), get("correlation_id"), get("api_key"), get("api_version"))


@cache
def calls(name: str, side: str) -> dict[tuple[Any, ...], Row]:
    """Calls that have latencies, with their parts, by identity, in the order of their requests."""
    found = tables(name, side)
    parts = {row["call_id"]: row for row in found["latencies"]}
    rows = [{**row, **parts[row["call_id"]]} for row in found["api_calls"] if row["call_id"] in parts]
    return {identity(row): row for row in sorted(rows, key=lambda row: row["request_frame"])}


def _microseconds(row: Row, column: str) -> float | None:
    value = row.get(column)
    return None if value is None else value / 1000


@cache
def freed(name: str, side: str) -> dict[tuple[Any, ...], float]:
    """How long each request lay behind the answer before it, in microseconds; negative: it came later."""
    found = {}
    connections: dict[int, list[Row]] = defaultdict(list)
    for row in calls(name, side).values():
        connections[row["connection_id"]].append(row)
    for some in connections.values():
        for before, row in pairwise(some):
            found[identity(row)] = (before["response_end_time"] - row["request_end_time"]) / MICROSECOND
    return found


def muted(name: str, side: str, key: tuple[Any, ...]) -> float:
    """How long a request found its connection muted for the quota of the call before, in microseconds."""
    behind = freed(name, side).get(key, 0.0)
    return max(0.0, _quota(name, side).get(key, 0) + min(0.0, behind))


@cache
def _quota(name: str, side: str) -> dict[tuple[Any, ...], int]:
    """The throttle time of the call before, in microseconds."""
    found = {}
    last: dict[int, tuple[Any, ...]] = {}
    for key, row in calls(name, side).items():
        before = witness(name).get(last.get(row["connection_id"], ()))
        found[key] = (before.throttle_us or 0) if before else 0
        last[row["connection_id"]] = key
    return found


def unread(name: str, key: tuple[Any, ...]) -> bool:
    """Whether the call took longer beside the broker than all that its log knows of."""
    row, line = calls(name, "broker").get(key), witness(name)[key]
    if row is None:
        return False
    took = (row["response_time"] - row["request_end_time"]) / MICROSECOND
    line_us = max(0.0, freed(name, "broker").get(key, 0.0)) + muted(name, "broker", key)
    return bool(took - line_us - (line.total_us or 0) > tolerated(line.total_us or 0))


def compared(name: str, side: str) -> Iterator[Compared]:
    """Every call of a recording that both kwsniff and the brokers' log know, part by part."""
    ways = {way["address"]: way for way in about(name)["clients"]}
    for key, row in calls(name, side).items():
        line = witness(name).get(key)
        if line is None:
            yield from _delayed(name, side, row)
            continue
        others = line.remote_us or 0
        waited = (others if line.api_key in WAITING else 0) + muted(name, side, key)
        ours = _microseconds(row, "deliberate_wait_ns")
        unsplit = row["wait"] == "replicas_possible"
        if not unsplit:
            yield Compared("wait", side, row, ours, waited)
        if waited >= LONG_US:
            if not unsplit:
                yield Compared("waited", side, row, ours, waited)
            throttled = muted(name, side, key) >= others
            yield Compared("word", side, row, _word(row, "throttle" if throttled else None), RIGHT)
        if unread(name, key):
            yield Compared("unread", side, row, 0.0, 0.0)
        else:
            parts = (line.request_queue_us, line.local_us, line.response_queue_us, line.send_us)
            took = sum(part or 0 for part in parts)
            took += others if unsplit or line.api_key not in WAITING else 0
            yield Compared("both" if unsplit else "broker", side, row, _microseconds(row, "broker_ns"), took)
        if not row["retransmissions"]:
            way = 1000.0 * ways[row["client_address"]]["round_trip_ms"] if side == "client" else 0.0
            ours = _microseconds(row, "network_ns")
            yield Compared("network", side, row, ours, max(way, min(ours or 0.0, _way_us(name, row, way))))
        if key in calls(name, "broker"):
            yield from _beside(name, side, row, calls(name, "broker")[key])


def _way_us(name: str, row: Row, least: float) -> float:
    """How much longer a call took here than beside the broker; `least` where that is not known."""
    there = calls(name, "broker").get(identity(row))
    return least if there is None else (row["total_ns"] - there["total_ns"]) / 1000


def _delayed(name: str, side: str, row: Row) -> Iterator[Compared]:
    """An authentication that failed: no log of requests has it. Its answer leaves when the delay is over and
    the broker's network thread looks again, every 300 ms where nothing wakes it (SocketServer's Processor).
    """
    delay_ms = about(name).get("authentication_delay_ms")
    if delay_ms and row["api_key"] == SASL_AUTHENTICATE and row["error_code"]:
        ours = _microseconds(row, "deliberate_wait_ns")
        theirs = min(max(ours or 0.0, 1000.0 * delay_ms), 1000.0 * (delay_ms + LOOKS_AGAIN_MS))
        for part in ("wait", "waited"):
            yield Compared(part, side, row, ours, theirs)
        yield Compared("word", side, row, _word(row), RIGHT)


def _word(row: Row, word: str | None = None) -> float:
    """Whether a call says rightly what it waited for."""
    fetched = "data" if row["record_bytes"] else "long_poll"
    wanted = word or WORDS.get(row["api_key"], fetched)
    return RIGHT if row["wait"].removesuffix("_possible") == wanted else WRONG


def _beside(name: str, side: str, row: Row, there: Row) -> Iterator[Compared]:
    """A call against the same call as it was recorded beside the broker."""
    line_us = there["queue_wait_ns"] / 1000
    if side == "client":
        yield Compared("line", side, row, _microseconds(row, "queue_wait_ns"), line_us)
        network = _microseconds(row, "network_ns")
        if row["retransmissions"]:
            ways = ("request_transmission_ns", "response_transmission_ns")
            ours = None if network is None else network + sum(row[way] for way in ways) / 1000
            lost_ns = row["total_ns"] - there["total_ns"] + sum(there[way] for way in ways)
            yield Compared("lost", side, row, ours, lost_ns / 1000)
    if line_us >= WITHIN_US:
        yield Compared("behind", side, row, _behind(name, side, row), RIGHT)


def _behind(name: str, side: str, row: Row) -> float | None:
    """Whether a call names one that it can have waited for."""
    if "queued_behind" not in row:
        return None
    before = next(
        (call for call in calls(name, side).values() if call["call_id"] == row["queued_behind"]), None
    )
    right = (
        before is not None
        and before["connection_id"] == row["connection_id"]
        and before["request_frame"] <= row["request_frame"]
        and before["response_end_time"] > row["request_end_time"]
    )
    return RIGHT if right else WRONG


def shares(found: Iterable[Compared]) -> dict[str, tuple[int, int]]:
    """Part -> how many agree, of how many."""
    agree: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for one in found:
        every[one.part] += 1
        agree[one.part] += one.agrees
    return {part: (agree[part], every[part]) for part in PARTS if every[part]}


def table(names: Iterable[str] = NAMES) -> str:
    """The shares of agreement, per recording and side, and of all together."""
    lines = [f"{'recording':24} {'side':7}" + "".join(f"{part:>15}" for part in PARTS)]
    every: dict[str, list[Compared]] = {side: [] for side in SIDES}
    for name in names:
        for side in SIDES:
            found = list(compared(name, side))
            every[side] += found
            lines.append(f"{name:24} {side:7}" + _cells(shares(found)))
    lines += [f"{'all':24} {side:7}" + _cells(shares(every[side])) for side in SIDES]
    return "\n".join(lines) + "\n"


def _cells(found: dict[str, tuple[int, int]]) -> str:
    texts = [
        f"{found[part][0]}/{found[part][1]}"
        + ("" if part == "unread" else f" {100 * found[part][0] // found[part][1]:3}%")
        if part in found
        else ""
        for part in PARTS
    ]
    return "".join(f"{text:>15}" for text in texts)


def disagreements(names: Iterable[str] = NAMES) -> str:
    """One line per part of a call that is not as its witness says."""
    lines = []
    for name in names:
        for one in (one for side in SIDES for one in compared(name, side) if not one.agrees):
            row = one.row
            if one.ours is None:
                continue
            lines.append(
                f"{name} {one.side} {one.part}: {row['api_name']} of {row['client_id']}, frame "
                f"{row['request_frame']}: {one.ours:.0f}, not {one.theirs:.0f} us; wait {row['wait']}, "
                f"sent again {row['retransmissions']}, total {row['total_ns'] / 1000:.0f} us"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from tests.pipeline.explained import explained

    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or NAMES
    sys.stdout.write(table(chosen) + "\n" + explained(chosen))
    if "--each" in sys.argv:
        sys.stdout.write(disagreements(chosen))
