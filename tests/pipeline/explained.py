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
    "sent again": "something was sent again, and what it took is only bounded",
    "the line's": "the time in line, and with it this part, is that of the call in front",
    "late timer": "the broker stood still, or its timer came late, while a fetch waited: kwsniff blames it",
    "followers": "acks=all waited for followers, which nothing on the connection proves: the broker's",
    "long way": "this time the way took longer than the round trip: beside the broker the call agrees",
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
    "network": "the way, where nothing was sent again",
    "line": "time in line",
    "behind": "behind whom",
}
_PAGE = """# How close the parts of a call are

<!-- Made by `python -m tests.pipeline.explained > docs/latency_breakdown.md`. -->

`latencies` says where the time of a call went. Brokers keep clocks of their own: how long a request queued,
worked, waited for others, was held back, waited to be sent. {recordings} recordings of brokers with such a
log (near and far, with loss, slow members, quotas, stopped followers, wrong passwords), each taken at the
client and at the broker, are compared with it call by call. A part agrees when it is within 2 ms or 15 % of
the log's, whichever is more.

Everything ran on two processors. Brokers and the relay between them and their clients got one at once when
they wanted it (real-time scheduling). Recorded without that, beside other work, the same scenes agree less:
at the client 81 % in the broker's own time and 93 % in waits of any length, beside the broker 92 % and 97 %.
What did not agree there were 2 to 50 ms for which threads of brokers, or the relay, stood in line for a
processor. No packet tells of that, whoever's machine it is.

| | at the client | at the broker |
|---|---|---|
{shares}

## What does not agree, and why

| | at the client: wait | broker | line | at the broker: wait | broker |
|---|---:|---:|---:|---:|---:|
{kinds}

Nearly all of it is a few ms that no packet tells of. Waits that nothing proves have names that end in
`_possible` in [latencies](tables/latencies.md).
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
        lines.append(f"| {meaning} | {' | '.join(cells)} |")
    rows = []
    for word, meaning in KINDS.items():
        counts = [found.get((*each, word), 0) for each in COLUMNS[:-1]]
        if any(counts):
            rows.append(f"| {meaning} | {' | '.join(str(count or '') for count in counts)} |")
    return _PAGE.format(recordings=len(NAMES), shares="\n".join(lines), kinds="\n".join(rows))


if __name__ == "__main__":
    sys.stdout.write(page())
