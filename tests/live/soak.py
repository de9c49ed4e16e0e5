"""`python -m tests.live.soak --seconds 1800 --rate 100`: what `kwsniff live` needs over a long time.

Real clients talk to librdkafka's mock cluster while tables, a ring of raw packets and metrics are written.
Printed now and then: calls by the metrics, resident memory, descriptors, threads; in the end the calls of the
tables against the requests in the brokers' log. Exit status 1 where they differ or packets were lost.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.live.load import peak_megabytes, processor_seconds, run_clients
from tests.live.running import Live, ports_of, table
from tests.record.mock import MockCluster


def sample(live: Live, address: str, began: float) -> str:
    """One row: seconds, calls, resident and most memory in MB, descriptors, threads, processor seconds."""
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - of our own port
        text = answer.read().decode()
    calls = sum(
        int(each.rpartition(" ")[2]) for each in text.splitlines() if each.startswith("kwsniff_calls_total")
    )
    status = Path(f"/proc/{live.pid}/status").read_text()
    resident, threads = (
        int(found[1]) for name in ("VmRSS", "Threads") if (found := re.search(rf"{name}:\s+(\d+)", status))
    )
    descriptors = len(list(Path(f"/proc/{live.pid}/fd").iterdir()))
    cells = (
        f"{time.monotonic() - began:.0f}",
        f"{calls:,}",
        f"{resident / 1000:.0f}",
        f"{peak_megabytes(live.pid):.0f}",
        str(descriptors),
        str(threads),
        f"{processor_seconds(live.pid):.1f}",
    )
    return f"| {' | '.join(cells)} |"


def follow(live: Live, address: str, seconds: float, every: float) -> None:
    """Prints a row every so often, until so many seconds are over."""
    began = time.monotonic()
    sys.stdout.write("| seconds | calls | resident MB | most MB | descriptors | threads | processor s |\n")
    sys.stdout.write(f"|{'---|' * 7}\n")
    while time.monotonic() - began < seconds:
        time.sleep(min(every, max(seconds - (time.monotonic() - began), 0.1)))
        sys.stdout.write(sample(live, address, began) + "\n")
        sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1: something was lost, or is not in the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=100.0, help="records per second of each of three producers"
    )
    parser.add_argument("--tool", choices=("dumpcap", "tcpdump"))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, MockCluster(3) as cluster:
        cluster.topic("load", 6)
        wishes = [
            "--port",
            ports_of(cluster),
            "-o",
            folder,
            "--rotate",
            "1m",
            "--ring",
            "3/8MB",
            "--metrics",
            "0",
        ]
        wishes += ["--tool", options.tool] if options.tool else []
        with Live(*wishes) as live:
            address = live.await_line("metrics at ").rpartition(" ")[2]
            clients = threading.Thread(
                target=run_clients, args=(cluster.bootstrap, "small", options.seconds, options.rate)
            )
            clients.start()
            follow(live, address, options.seconds, options.every)
            clients.join()
            time.sleep(3)
            status = live.end(signal.SIGTERM)
        calls, logged = table(Path(folder), "api_calls").num_rows, cluster.requests().total()
    sys.stdout.write(f"exit status {status}; calls in the tables {calls:,}, in the brokers' log {logged:,}\n")
    sys.stdout.write("\n".join(live.err[-3:]) + "\n")
    return int(bool(status) or calls != logged)


if __name__ == "__main__":
    sys.exit(main())
