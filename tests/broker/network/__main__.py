"""`python -m tests.broker.network [SCENE...]`: records the named scenes (all of them)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.broker import artifacts, requestlog
from tests.broker.__main__ import CAPTURES, alone
from tests.broker.about import MOMENT, camel
from tests.broker.network import (
    between,
    calm,
    clocks,
    elsewhere,
    everyday,
    farther,
    growth,
    incidents,
    leaders,
    limits,
    listeners,
    members,
    mistakes,
    namespaces,
    openings,
    others,
    paths,
    progress,
    questions,
    racks,
    refused,
    retries,
    stalled,
    tls_listeners,
    unvisited,
    workers,
    zookeepers,
)
from tests.broker.network.site import SCENES, Scene, Site, opened
from tests.broker.requestlog import Logged
from tests.record.tcpdump import why_not

LARGEST = 200_000
LONGEST_S = 400
KINDS = (
    clocks,
    incidents,
    mistakes,
    others,
    between,
    openings,
    listeners,
    tls_listeners,
    farther,
    workers,
    members,
    calm,
    everyday,
    elsewhere,
    zookeepers,
    paths,
    refused,
    growth,
    progress,
    leaders,
    racks,
    stalled,
    retries,
    unvisited,
    limits,
    questions,
)


def record(name: str, captures: Path = CAPTURES) -> str:
    """Plays one scene and keeps what was recorded: one line about it."""
    played = SCENES[name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder, opened(Path(folder), played) as site:
        played.play(site)
        site.close()  # the request log is whole only then
        logged = site.logged() if played.witnessed else []
        kept = captures / ("incidents" if played.finding else "clocks") / name
        kept.mkdir(parents=True, exist_ok=True)
        sizes = {}
        for side in played.sides:
            data = (Path(folder) / f"{side}.pcap").read_bytes()
            if len(data) > LARGEST:
                raise RuntimeError(f"{name}: {len(data)} bytes are too many to keep")
            (kept / f"{side}.pcap").write_bytes(data)
            sizes[side] = len(data)
        if played.witnessed:
            requestlog.written(kept / "witness.tsv", logged)
        (kept / "about.toml").write_text(about(name, played, site, logged))
    return f"{name}: {sizes}, {len(logged)} requests, {site.report}, {time.monotonic() - started:.0f} s\n"


def about(name: str, played: Scene, site: Site, logged: Sequence[Logged]) -> str:
    """Who talked to whom over what, what was done, what it shows."""
    quoted = json.dumps
    totals = Counter(camel(row.api) for row in logged if not row.forwarded)
    lines = [
        f"purpose = {quoted(played.purpose)}",
        f"did = {quoted(played.did)}",
        *(f"{key} = {quoted(value)}" for key, value in played.finding.items()),
        *(f"{key} = {value}" for key, value in played.known.items()),
        *([f"also = {quoted(list(played.also))}"] if played.also else []),
        "files = { " + ", ".join(f"{side} = {quoted(f'{side}.pcap')}" for side in played.sides) + " }",
        *(['witness = "witness.tsv"'] if played.witnessed else []),
        f"recorded = {datetime.now(UTC):%Y-%m-%d}",
        f"witnessed = [{site.begin:{MOMENT}}, {site.end:{MOMENT}}]",
        f"anomalies = {quoted(_anomalies(played))} # no others are allowed",
        f"command = {quoted(f'python -m tests.broker.network {name}')}",
        "",
        "[broker]",
        f"name = {quoted(f'Apache Kafka {played.version}')}",
        f"addresses = {quoted([site.net.host(number) for number in range(1, played.nodes + 1)])}",
        f"ports = {site.cluster.ports}",
        "",
        "# what the relay did to packets of each client",
    ]
    for client, way in played.clients.items():
        lines += [
            "[[clients]]",
            f"address = {quoted(site.net.address(client))}",
            f"round_trip_ms = {way.round_trip_ms}",
            f"loss = {way.loss}",
            "",
        ]
    lines += ["# what clients said they did", "[report]"]
    lines += [f"{quoted(key)} = {value}" for key, value in site.report.items()]
    if logged:
        lines += ["", "# requests that the brokers logged", "[requests]"]
        lines += [f"{key} = {count}" for key, count in sorted(totals.items())]
    return "\n".join(lines) + "\n"


def _anomalies(played: Scene) -> list[str]:
    """Followers have connected before the recording begins."""
    return [*(["framing_resumed"] if played.nodes > 1 else []), *played.anomalies]


def run(names: list[str]) -> int:
    reason = artifacts.why_not() or why_not() or namespaces.why_not()
    if reason:
        sys.stderr.write(f"cannot record: {reason}\n")
        return 2
    if unknown := set(names) - set(SCENES):
        sys.stderr.write(f"no such scene: {', '.join(sorted(unknown))}; there are {', '.join(SCENES)}\n")
        return 2
    if len(names) == 1:
        with alone():
            return int(not attempted(names[0]))
    one = [sys.executable, "-m", "tests.broker.network"]
    done = [
        subprocess.run([*one, name], check=False, timeout=LONGEST_S).returncode for name in names or SCENES
    ]
    return max(done)


def attempted(name: str) -> bool:
    try:
        sys.stdout.write(record(name))
        sys.stdout.flush()
    except Exception:  # the next scene may well succeed
        sys.stderr.write(f"{name}:\n{traceback.format_exc()}")
        return False
    return True


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # an exception: brokers are stopped on the way out
    sys.exit(run(sys.argv[1:]))
