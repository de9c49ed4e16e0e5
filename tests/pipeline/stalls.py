"""`python -m tests.pipeline.stalls`: what stalled recordings wait for, beside what was done to them.

Of each recording it is known what its bytes waited for: a relay, a socket option or a kernel setting caused
it. The share of stalled time with that cause is printed, and each place's sum: two places that saw the same
stalls are each other's witness.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kwsniff
from tests.house.tree import ROOT

CAPTURES = ROOT / "captures"
LOST = ("fast_retransmission", "retransmission_timeout")
SLOW_START = "congestion_window"
TRUTH: dict[str, tuple[str, ...]] = {
    "field/nagle_40ms": ("nagle_delayed_ack",),
    "field/thin_link": ("link_queue",),
    "incidents/nagle_stall": ("nagle_delayed_ack",),
    "incidents/window_unscaled": ("receiver_window", SLOW_START),
    "incidents/window_of_the_broker": ("receiver_window", SLOW_START),
    "incidents/healthy_bulk_far": (SLOW_START,),
    "incidents/receiver_full": ("zero_window",),
    "incidents/mtu_requests": ("path_mtu",),
    "incidents/loss_5": LOST,
    "incidents/path_dead": LOST,
    "incidents/path_dead_gives_up": LOST,
    "incidents/path_dead_python": LOST,
    "incidents/idle_dropped": LOST,
    "clocks/loss_2": LOST,
    "clocks/loss_3_far": LOST,
}
"""Recording -> what its bytes waited for, mainly for the first. A new connection is in slow start besides."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Stalled nanoseconds of one recording at one place."""

    recording: str
    place: str
    causes: Counter[str]

    @property
    def total(self) -> int:
        return self.causes.total()

    @property
    def right(self) -> float:
        """The share with a cause that it can have."""
        return sum(self.causes[cause] for cause in TRUTH[self.recording]) / self.total

    @property
    def main(self) -> str:
        return self.causes.most_common(1)[0][0]


def places(recording: str) -> Iterator[tuple[str, Path]]:
    """The captures of a recording; one without a folder was taken at the client."""
    if (alone := CAPTURES / f"{recording}.pcap").is_file():
        yield "client", alone
    yield from ((path.stem, path) for path in sorted((CAPTURES / recording).glob("*.pcap")))


def judge(recording: str) -> list[Judged]:
    """Of each place that saw stalls."""
    found = []
    for place, path in places(recording):
        causes: Counter[str] = Counter()
        for row in kwsniff.analyze(path).stalls.to_pylist():
            causes[row["cause"]] += row["duration_ns"]
        if causes:
            found.append(Judged(recording, place, causes))
    return found


def main() -> None:
    for recording in TRUTH:
        for each in judge(recording):
            told = ", ".join(f"{cause} {took / 1e6:,.0f}" for cause, took in each.causes.most_common())
            sys.stdout.write(f"{recording:32} {each.place:7} {each.right:6.1%}  {told} ms\n")


if __name__ == "__main__":
    main()
