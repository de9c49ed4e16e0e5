"""Why parts of calls are not as the brokers' own clocks say: docs/latency_breakdown.md.

`python -m tests.pipeline.explained > docs/latency_breakdown.md` makes the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from tests.pipeline.clocks import (
    NAMES,
    SIDES,
    WITHIN_US,
    Compared,
    calls,
    compared,
    identity,
    muted,
    shares,
    tolerated,
    witness,
)

KINDS = {
    "sent again": "a retransmission whose time is only bounded",
    "the line's": "queueing, and with it this part, is that of the call in front",
    "late timer": "the broker stalled, or its timer came late, while a fetch waited: kwsniff blames it",
    "followers": "acks=all waited for followers, which nothing on the connection proves: the broker's",
    "long way": "the network took longer than the round trip: at the broker the call agrees",
    "own time": "a call that waited, and for which the broker took more than 1 ms itself: counted as wait",
    "short wait": "a wait so short that it counts as the broker's",
    "no longer seen": "the log's time went on when the answer had left: its thread had no processor",
    "not yet read": "the request lay beside the broker before the log's time began",
    "late followers": "waiting followers were answered later than the records were written",
    "other": "none of these",
}
"""Why a part of a call is not as its witness says; the first that holds."""
COLUMNS = [(side, part) for side in SIDES for part in ("wait", "broker", "line")]
SHOWN = {
    "waited": "deliberate waits of 100 ms and more",
    "word": "what such a call waited for, with or without `_possible`",
    "wait": "deliberate waits of any length",
    "broker": "the broker's own time",
    "both": "the broker's and its followers' time, where nothing that was captured splits them",
    "network": "network, where nothing was retransmitted",
    "line": "queueing",
    "queued_behind": "behind whom",
}
_PAGE = """# Latency breakdown

<!-- Made by `python -m tests.pipeline.explained > docs/latency_breakdown.md`. -->

[latencies](tables/latencies.md) splits the time of a call into parts. {recordings} recordings have
brokers' own logs of these parts: near and far, with loss, slow members, quotas, stopped followers, wrong
passwords, each taken at the client and at the broker. A part agrees when it is within 2 ms or 15 % of the
log's, whichever is more.

Brokers and the relay ran with real-time scheduling on two processors. Without it, threads wait 2 to 50 ms
for a processor, which no packet shows: at the client 81 % of the broker's own time and 93 % of waits agree,
at the broker 92 % and 97 %.

| | at the client | at the broker |
|---|---|---|
{shares}

## What does not agree, and why

| | at the client: wait | broker | line | at the broker: wait | broker |
|---|---:|---:|---:|---:|---:|
{kinds}

Nearly all of it is a few ms that no packet shows. Waits without proof have names that end in `_possible`.
"""


def kind(name: str, one: Compared) -> str:
    """One of KINDS for a part that does not agree."""
    row, line = one.row, witness(name).get(identity(one.row))
    if line is None or one.ours is None:
        return "other"
    others = line.remote_us or 0
    parts = (line.request_queue_us, line.local_us, line.response_queue_us, line.send_us)
    both = sum(part or 0 for part in parts) + others + muted(name, one.side, identity(row))
    more = (row["broker_ns"] + row["deliberate_wait_ns"]) / 1000 - both  # than the log knows of
    agree = abs(more) <= tolerated(both)
    waited = bool(row["deliberate_wait_ns"])
    too_much_wait = (one.ours < one.theirs) == (one.part == "broker")
    of_the_call = one.part in {"wait", "broker", "both"}
    found = {
        "sent again": row["retransmissions"] > 0,
        "the line's": one.part == "line" or (row["queue_wait_ns"] > 0 and not agree),
        "late timer": of_the_call and row["wait"] == "long_poll" and agree and not too_much_wait,
        "followers": of_the_call and row["acks"] == -1 and others > 0 and not waited and agree,
        "long way": of_the_call and one.side == "client" and more > 0 and _agrees_beside(name, one),
        "own time": of_the_call and waited and too_much_wait and more > -WITHIN_US,
        "short wait": of_the_call and others > 0 and not waited and not too_much_wait,
        "no longer seen": of_the_call and more < 0,
        "late followers": of_the_call and row["wait"] == "replicas" and agree,
        "not yet read": one.part in {"broker", "both"},
    }
    return next((word for word in KINDS if found.get(word)), "other")


def _agrees_beside(name: str, one: Compared) -> bool:
    there = calls(name, "broker").get(identity(one.row))
    if there is None:
        return False
    column = "broker_ns" if one.part == "broker" else "deliberate_wait_ns"
    return abs(there[column] / 1000 - one.theirs) <= tolerated(one.theirs)


def kinds(names: Iterable[str] = NAMES) -> dict[tuple[str, str, str], int]:
    """Side, part, kind -> how many parts of calls do not agree."""
    found: Counter[tuple[str, str, str]] = Counter()
    for name in names:
        for side in SIDES:
            for one in compared(name, side):
                if not one.agrees:
                    found[side, one.part, kind(name, one)] += 1
    return found


def explained(names: Iterable[str] = NAMES) -> str:
    """What does not agree, by kind."""
    found = kinds(names)
    lines = [f"{'not as its witness says':24}" + "".join(f"{' '.join(each):>15}" for each in COLUMNS)]
    for word, meaning in KINDS.items():
        counts = [found.get((*each, word), 0) for each in COLUMNS]
        if any(counts):
            lines.append(f"{word:24}" + "".join(f"{count or '':>15}" for count in counts) + f"  {meaning}")
    return "\n".join(lines) + "\n"


def page() -> str:
    """docs/latency_breakdown.md."""
    every = {side: shares(one for name in NAMES for one in compared(name, side)) for side in SIDES}
    found = kinds()
    lines = []
    for part, meaning in SHOWN.items():
        cells = [
            f"{agree:,} of {total:,} ({100 * agree // total} %)" if total else ""
            for agree, total in (every[side].get(part, (0, 0)) for side in SIDES)
        ]
        if any(cells):
            lines.append(f"| {meaning} | {' | '.join(cells)} |")
    rows = []
    for word, meaning in KINDS.items():
        counts = [found.get((*each, word), 0) for each in COLUMNS[:-1]]
        if any(counts):
            rows.append(f"| {meaning} | {' | '.join(str(count or '') for count in counts)} |")
    return _PAGE.format(recordings=len(NAMES), shares="\n".join(lines), kinds="\n".join(rows))


if __name__ == "__main__":
    sys.stdout.write(page())
