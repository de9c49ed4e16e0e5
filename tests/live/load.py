"""`python -m tests.live.load`: how much `kwsniff live` keeps up with, and whether it saw all of it.

Real clients (confluent-kafka) talk to librdkafka's mock cluster over loopback as fast as this machine lets
them, while `kwsniff live -o` and a tcpdump recording run beside; brokers, clients, tools and kwsniff share
the processors. Printed: packets, drops by the kernel and by kwsniff, processor time, and whether the tables
equal `analyze` of the recording.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.live.beside import different_rows
from tests.live.running import BEGUN, Live, children_of, ports_of, table
from tests.record.mock import MockCluster
from tests.record.tcpdump import recording

_TICKS = os.sysconf("SC_CLK_TCK")
_SETTLE_S = 3.0
_RECORDER_KB = "1048576"  # the recorder is the yardstick: it must not lose a packet
KINDS = {
    # Many small requests: every record is a request of its own, several producers.
    "small": {"linger.ms": 0, "batch.num.messages": 1, "size": 100, "producers": 3, "in.flight": 50},
    # Large requests: records of 10 kB in batches of up to 1 MB.
    "large": {"linger.ms": 5, "batch.num.messages": 1000, "size": 10_000, "producers": 2, "in.flight": 5},
}

_CLIENT = """
import sys, time
from confluent_kafka import Producer, Consumer
servers, kind, seconds, linger, batch, size, flight, rate = sys.argv[1:9]
until = time.monotonic() + float(seconds)
common = {"bootstrap.servers": servers, "log_level": 0, "enable.metrics.push": False}
if kind == "consumer":
    consumer = Consumer({**common, "client.id": "load-reader", "group.id": "load",
                         "auto.offset.reset": "latest"})
    consumer.subscribe(["load"])
    while time.monotonic() < until:
        consumer.consume(1000, 0.1)
    consumer.close()
else:
    producer = Producer({**common, "client.id": f"load-{kind}", "linger.ms": int(linger),
                         "batch.num.messages": int(batch), "queue.buffering.max.messages": 2000,
                         "message.max.bytes": 2_000_000, "batch.size": 1_000_000,
                         "max.in.flight.requests.per.connection": int(flight)})
    value = b"x" * int(size)
    sent, began, rate = 0, time.monotonic(), float(rate)
    while time.monotonic() < until:
        if rate and sent > rate * (time.monotonic() - began):
            producer.poll(0.001)
            continue
        try:
            producer.produce("load", value)
            sent += 1
            producer.poll(0)
        except BufferError:
            producer.poll(0.005)
    producer.flush(30)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. Seconds are of processor time, kwsniff's own (without start-up) and its tool's."""

    seconds: float
    calls: int
    packets: int
    megabytes: float
    dropped_by_kernel: int
    lost_here: int
    own_seconds: float
    tool_seconds: float
    peak_mb: float
    differing: dict[str, int]
    yardstick: str
    """How many calls the recording has, and whether all tables are equal; or why nobody knows."""


def measure(
    kind: str, seconds: float, folder: Path, *, tool: str, rate: float = 0, recorded: bool = True
) -> Outcome:
    """One load, with a recording beside it. `rate`: records per second and producer, 0 for all there can
    be."""
    out, beside = folder / "out", folder / "beside.pcap"
    with MockCluster(2) as cluster:
        cluster.topic("load", 4)
        # No --lines: they would measure a pipe's reader, too.
        options = [
            "--tool",
            tool,
            "--port",
            ports_of(cluster),
            "--interval",
            "1s",
            "-o",
            str(out),
            "--buffer",
            "256",
        ]
        with Live(*options) as live:
            live.await_line(BEGUN)
            start_up = processor_seconds(live.pid)
            began = time.monotonic()
            yardstick = ""
            try:
                with _recorded(beside, cluster.ports) if recorded else nullcontext():
                    began = time.monotonic()
                    run_clients(cluster.bootstrap, kind, seconds, rate)
                    took = time.monotonic() - began
                    time.sleep(_SETTLE_S)
            except RuntimeError as error:  # it lost packets itself
                yardstick = str(error)
            children = children_of(live.pid)
            tool_seconds = sum(processor_seconds(child) for child in children)
            own_seconds, peak = processor_seconds(live.pid) - start_up, peak_megabytes(live.pid)
            if live.end(signal.SIGTERM):
                raise RuntimeError("\n".join(live.err))
        said = next(line for line in live.err if "dropped by the kernel" in line)
        ports = cluster.ports
    calls, packets, dropped, lost = (int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", said))
    megabytes = table(out, "captures")["bytes"][0].as_py() / 1e6
    differing: dict[str, int] = {}
    if recorded and not yardstick:
        differing, recorded_calls = different_rows(out, beside, ports=ports)
        yardstick = f"{calls:,} of {recorded_calls:,} calls, " + (
            f"differs: {differing}" if differing else "equal"
        )
    return Outcome(
        seconds=took,
        calls=calls,
        packets=packets,
        megabytes=megabytes,
        dropped_by_kernel=dropped,
        lost_here=lost,
        own_seconds=own_seconds,
        tool_seconds=tool_seconds,
        peak_mb=peak,
        differing=differing,
        yardstick=yardstick or "not recorded",
    )


def _recorded(path: Path, ports: Sequence[int]) -> AbstractContextManager[None]:
    return recording(path, ports, nanoseconds=True, immediate=False, buffer_kb=_RECORDER_KB)


def run_clients(bootstrap: str, kind: str, seconds: float, rate: float) -> None:
    """Producers and a consumer for so long; raises RuntimeError when one of them fails."""
    load = KINDS[kind]
    shape = [str(load[name]) for name in ("linger.ms", "batch.num.messages", "size", "in.flight")]
    words = [*(f"{kind}-{number}" for number in range(load["producers"])), "consumer"]
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", _CLIENT, bootstrap, word, str(seconds), *shape, str(rate)],
            stderr=subprocess.DEVNULL,
        )
        for word in words
    ]
    for client in clients:
        if client.wait(seconds + 120):
            raise RuntimeError("a client failed")


def processor_seconds(pid: int) -> float:
    """User and system time of a process that still runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_megabytes(pid: int) -> float:
    """Most memory it ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else 0.0


def report(kind: str, tool: str, found: Outcome) -> str:
    """A row of the table in docs/live.md."""
    hundreds = found.megabytes / 100
    rates = (found.megabytes, found.calls)
    mb, calls = (f"{number / found.seconds:,.0f}" for number in rates)
    cells = (
        f"{kind}, {tool}",
        f"{mb} MB/s, {calls} calls/s",
        f"{found.packets:,}",
        f"{found.dropped_by_kernel:,}",
        f"{found.lost_here:,}",
        f"{found.own_seconds / hundreds:.2f} s + {found.tool_seconds / hundreds:.2f} s",
        f"{found.peak_mb:,.0f} MB",
        found.yardstick,
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row per load and tool; exit status 1 when something was lost or differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--tool", action="append", choices=("dumpcap", "tcpdump", "scapy"))
    parser.add_argument(
        "--rate", type=float, default=0.0, help="records per second and producer; 0: all there can be"
    )
    parser.add_argument("--alone", action="store_true", help="no recording beside it")
    parser.add_argument("--keep", type=Path, help="a directory for the recording and the tables")
    options = parser.parse_args(arguments)
    bad = 0
    for tool in options.tool or ["dumpcap", "tcpdump"]:
        for kind in options.kind or list(KINDS):
            with tempfile.TemporaryDirectory(dir=options.keep) as folder:
                found = measure(
                    kind,
                    options.seconds,
                    Path(folder),
                    tool=tool,
                    rate=options.rate,
                    recorded=not options.alone,
                )
            sys.stdout.write(report(kind, tool, found) + "\n")
            sys.stdout.flush()
            bad += bool(found.differing or found.lost_here)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
