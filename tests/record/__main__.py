"""`python -m tests.record [NAME...]`: records the named talks (all of them) into captures/."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.broker import clientlog
from tests.broker.clientlog import Measured
from tests.record.mock import MockCluster, version
from tests.record.scrub import scrubbed
from tests.record.talks import TALKS, Report, Talk
from tests.record.tcpdump import recording, why_not
from tests.traffic.wire import API_NAMES

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
PACKAGES = {"librdkafka": "confluent-kafka", "kafka-python": "kafka-python", "aiokafka": "aiokafka"}
LARGEST = 60_000
RELAYS = {
    None: "as the mock answers: newer than 2 is refused with error 35 and a malformed body",
    "modern": "a relay answers version 3 and 4",
    "refusing": "a relay refuses versions newer than 2 with error 35 in the layout of version 0",
}


Outcome = tuple[Report, dict[int, int], list[int], list[Measured]]


def record(talk: Talk, path: Path) -> Outcome:
    """Runs one talk while tcpdump writes `path`.

    The client's report, the broker's log, the ports, what the client measured of each request.
    """
    report = Report()
    measured: list[Measured] = []
    begin = datetime.now(UTC)
    with MockCluster(talk.brokers, talk.relay) as cluster:
        for topic, partitions in talk.topics.items():
            cluster.topic(topic, partitions)
        for api_key, (lowest, highest) in talk.versions.items():
            cluster.limit(api_key, lowest, highest)
        ports = cluster.ports
        with (
            recording(path, ports, nanoseconds=talk.brokers > 1, snaplen=talk.snaplen),
            clientlog.listening(path.with_suffix(".log"), measured, lambda: begin),
        ):
            talk.run(cluster, report)
        path.with_suffix(".log").unlink()
        return report, dict(sorted(cluster.requests().items())), ports, measured


def about(name: str, talk: Talk, outcome: Outcome) -> str:
    """The text of about.toml."""
    report, requests, ports, measured = outcome
    package = PACKAGES[talk.client]
    quoted = json.dumps
    lines = [
        f"purpose = {quoted(talk.purpose)}",
        f"shows = {quoted(list(talk.shows), indent=4)}",
        f"file = {quoted(talk.file)}",
        *(['measured = "client.tsv"'] if measured else []),
        f"recorded = {datetime.now(UTC):%Y-%m-%d}",
        f"command = {quoted(f'python -m tests.record {name}')}",
        f"snaplen = {talk.snaplen}",
        "",
        "[client]",
        f"name = {quoted(talk.client)}",
        f"package = {quoted(f'{package} {importlib.metadata.version(package)}')}",
        *([f"version = {quoted(version())}"] if talk.client == "librdkafka" else []),
        "",
        "[broker]",
        f"name = {quoted(f'librdkafka {version()} mock cluster')}",
        f"ports = {ports}",
        f"api_versions = {quoted(RELAYS[talk.relay])}",
        "",
        "# what the client said it did",
        "[report]",
        f"produced = {report.produced}",
        f"failed = {report.failed}",
        f"consumed = {report.consumed}",
        f"notes = {quoted(report.notes)}",
        "",
        "# requests of each API, counted by the brokers themselves",
        "[requests]",
        *(f"{API_NAMES[key]} = {count}" for key, count in requests.items()),
    ]
    return "\n".join(lines) + "\n"


def run(arguments: list[str]) -> int:
    reason = why_not()
    if reason:
        sys.stderr.write(f"cannot record: {reason}\n")
        return 2
    for name in arguments or TALKS:
        talk = TALKS[name]
        folder = CAPTURES / name
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"new-{talk.file}"
        outcome = record(talk, fresh)
        size = fresh.stat().st_size
        sys.stdout.write(f"{name}: {size} bytes, {sum(outcome[1].values())} requests, {outcome[0]}\n")
        if size > LARGEST:
            fresh.unlink()
            sys.stderr.write(f"{name}: too large to keep ({LARGEST} bytes at most)\n")
            return 1
        data = fresh.read_bytes()
        (folder / talk.file).write_bytes(scrubbed(data) if talk.file.endswith(".pcapng") else data)
        fresh.unlink()
        clientlog.written(folder / "client.tsv", outcome[3])
        (folder / "about.toml").write_text(about(name, talk, outcome))
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
