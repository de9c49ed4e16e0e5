"""`python -m tests.live.soak --seconds 3600 --rate 400`: what `kwsniff live` needs over a long time, and
whether it saw every call that real brokers counted.

Three Kafka brokers, producers, a consumer, and visitors who come and go while tables, a ring of raw packets
and metrics are written. Printed now and then: calls by the metrics, resident memory, descriptors, threads. In
the end requests by API and version and errors against the brokers' JMX, and means of times beside Kafka's.
Exit status 1 where numbers differ or packets were lost.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.broker.brokers import Cluster
from tests.live.jmx import Counted, counted, error_differences, latencies, request_differences
from tests.live.load import peak_megabytes, processor_seconds, run_clients
from tests.live.running import BEGUN, Live

VERSION = "4.3.1"
_MORE_S = 900
_SETTLE_S = 3.0
_API = re.compile(r'kwsniff_calls_total\{api="([^"]*)".*\} (\d+)')
# A member that joins and leaves, a consumer of what is not there, a producer to what is not there.
_VISITOR = """
import sys, time
from confluent_kafka import Consumer, KafkaException, Producer
servers, until = sys.argv[1], time.monotonic() + float(sys.argv[2])
common = {"bootstrap.servers": servers, "log_level": 0, "enable.metrics.push": False}
turn = 0
while time.monotonic() < until:
    turn += 1
    consumer = Consumer({**common, "client.id": f"visitor-{turn % 500}", "group.id": f"visitors-{turn % 50}",
                         "auto.offset.reset": "latest"})
    consumer.subscribe(["load", "missing"])
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            consumer.consume(1000, 0.2)
        except KafkaException:
            pass
    consumer.close()
    producer = Producer({**common, "client.id": "lost", "message.timeout.ms": 500})
    producer.produce("missing", b"x")
    producer.flush(2)
"""


@contextmanager
def visitors(bootstrap: str, seconds: float) -> Iterator[None]:
    """Clients that come and go meanwhile."""
    process = subprocess.Popen(
        [sys.executable, "-c", _VISITOR, bootstrap, str(seconds)], stderr=subprocess.DEVNULL
    )
    try:
        yield
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def scraped(address: str) -> str:
    """The metrics as text."""
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - of our own port
        return str(answer.read().decode())


def calls_by_api(text: str) -> Counter[str]:
    """Of the metrics."""
    found: Counter[str] = Counter()
    for api, number in _API.findall(text):
        found[api] += int(number)
    return found


def sample(live: Live, address: str, began: float) -> str:
    """One row: seconds, calls, resident and most memory in MB, descriptors, threads, processor seconds."""
    calls = calls_by_api(scraped(address)).total()
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
    _says("| seconds | calls | resident MB | most MB | descriptors | threads | processor s |")
    _says(f"|{'---|' * 7}")
    while time.monotonic() - began < seconds:
        time.sleep(min(every, max(seconds - (time.monotonic() - began), 0.1)))
        _says(sample(live, address, began))


def play(cluster: Cluster, seconds: float, rate: float) -> threading.Thread:
    """Clients at work, in a thread."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic("load", 6, 3)]).values():
        made.result(60)

    def clients() -> None:
        with visitors(cluster.bootstrap, seconds):
            run_clients(cluster.bootstrap, "small", seconds, rate)

    thread = threading.Thread(target=clients)
    thread.start()
    return thread


def compare(folder: Path, brokers: Sequence[Counted], text: str) -> list[str]:
    """What differs; prints the rest. `text`: the metrics, as of the end."""
    numbers = [sum(broker.requests.values()) for broker in brokers]
    kinds = len({key for broker in brokers for key in broker.requests})
    errors = sum(sum(broker.errors.values()) for broker in brokers)
    _says(f"JMX: {sum(numbers):,} requests of {kinds} APIs and versions, {errors:,} errors")
    told = calls_by_api(text)
    _says(f"metrics: {told.total():,} calls of {len(told)} APIs")
    for line in latencies(folder, brokers):
        _says(line)
    return request_differences(folder, brokers) + error_differences(folder, brokers)


def _says(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1: something was lost, or is not in the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=400.0, help="records per second of three producers each"
    )
    parser.add_argument("--tool", choices=("dumpcap", "tcpdump"))
    parser.add_argument(
        "--nice", type=int, metavar="N", help="kwsniff's priority, where others want the processors as well"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the tables stay")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kwsniff-soak-") as name:
        tables = options.keep or Path(name) / "tables"
        cluster = Cluster(
            Path(name) / "servers",
            VERSION,
            3,
            lifetime_s=int(options.seconds) + _MORE_S,
            logs_requests=False,
        )
        ports = ",".join(map(str, (*cluster.ports, *cluster.controller_ports)))
        wishes = ["--port", ports, "-o", str(tables), "--rotate", "1m", "--ring", "3/8MB", "--metrics", "0"]
        wishes += ["--tool", options.tool] if options.tool else []
        before = [] if options.nice is None else ["nice", "-n", str(options.nice)]
        with Live(*wishes, before=before) as live:
            live.await_line(BEGUN)
            address = live.await_line("metrics at ").rpartition(" ")[2]
            with cluster:
                clients = play(cluster, options.seconds, options.rate)
                follow(live, address, options.seconds, options.every)
                clients.join()
                time.sleep(_SETTLE_S)
                brokers = [
                    counted(broker.folder, VERSION, (port, control))
                    for broker, port, control in zip(
                        cluster.brokers, cluster.ports, cluster.controller_ports, strict=True
                    )
                ]
                time.sleep(_SETTLE_S)
                text = scraped(address)
                status = live.end(signal.SIGTERM)
        different = compare(tables, brokers, text)
    _says("\n".join(live.err[-3:]))
    _says(f"exit status {status}; " + ("\n".join(different) or "no number differs from JMX"))
    return int(bool(status or different))


if __name__ == "__main__":
    sys.exit(main())
