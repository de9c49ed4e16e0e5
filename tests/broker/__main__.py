"""`python -m tests.broker [SCENARIO...]`: records the named scenarios (all of them) into captures/."""

from __future__ import annotations

import fcntl
import gzip
import importlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker import artifacts, clientlog, requestlog
from tests.broker.about import about
from tests.broker.handovers import HANDOVERS
from tests.broker.proxies import PROXIED
from tests.broker.stage import SCENARIOS, Stage
from tests.broker.ways import RECORDS
from tests.record.scrub import scrubbed
from tests.record.tcpdump import why_not

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
PLAYS = (
    "clients",
    "admin",
    "security",
    "tls",
    "cluster",
    "zookeeper",
    "odd",
    "versions",
    "ways",
    "handovers",
    "proxies",
)
LARGEST = 400_000
LONGEST_S = 900


def record(name: str, captures: Path = CAPTURES) -> str:
    """Plays one scenario and keeps what was recorded in a folder of its name: one line about it."""
    scene = SCENARIOS[name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        fresh = Path(folder) / scene.file.removesuffix(".gz")
        stage = Stage(Path(folder) / "servers", fresh, scene.snaplen, scene.interface)
        stage.folder.mkdir()
        with stage.listening():
            scene.play(stage)
        if stage.cluster is None:
            raise RuntimeError(f"{name} started no brokers")
        logged = requestlog.rows(stage.cluster.request_logs(), stage.begin, stage.end)
        logged = [row for row in logged if row.broker_port in stage.ports]
        data = fresh.read_bytes()
        if len(data) > LARGEST:
            raise RuntimeError(f"{name}: {len(data)} bytes are too many to keep")
        kept = captures / name
        kept.mkdir(exist_ok=True)
        whole = scrubbed(data) if fresh.suffix == ".pcapng" else data
        (kept / scene.file).write_bytes(gzip.compress(whole, mtime=0) if fresh.name != scene.file else whole)
        if scene.keylog:
            shutil.copy(fresh.with_name(scene.keylog), kept / scene.keylog)
        for noted in (RECORDS, HANDOVERS, PROXIED):
            if (records := fresh.with_name(noted)).exists():
                shutil.copy(records, kept / noted)
        requestlog.written(kept / "witness.tsv", logged)
        if stage.measured:
            clientlog.written(kept / "client.tsv", stage.measured)
        (kept / "about.toml").write_text(about(name, scene, stage, logged))
    seconds = time.monotonic() - started
    return f"{name}: {len(data)} bytes, {len(logged)} requests, {stage.report}, {seconds:.0f} s\n"


def load() -> None:
    """Fills SCENARIOS."""
    for play in PLAYS:
        importlib.import_module(f"tests.broker.{play}")


def run(arguments: list[str]) -> int:
    reason = artifacts.why_not() or why_not()
    if reason:
        sys.stderr.write(f"cannot record: {reason}\n")
        return 2
    load()
    names = arguments or sorted(SCENARIOS)
    if unknown := set(names) - set(SCENARIOS):
        sys.stderr.write(
            f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}\n"
        )
        return 2
    if len(names) == 1:
        with alone():
            return int(not attempted(names[0]))
    # One process each: clients of librdkafka that were not told to stop would go on in the next recording.
    one = [sys.executable, "-m", "tests.broker"]
    return max(subprocess.run([*one, name], check=False, timeout=LONGEST_S).returncode for name in names)


@contextmanager
def alone() -> Iterator[None]:
    """Waits until no other recording is made on this machine: ports are taken one cluster at a time."""
    artifacts.CACHE.mkdir(parents=True, exist_ok=True)
    with (artifacts.CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def attempted(name: str) -> bool:
    """Records a scenario, once more if it fails: on a busy machine the recorder may lose packets."""
    for _ in range(2):
        try:
            sys.stdout.write(record(name))
            sys.stdout.flush()
            return True
        except Exception:  # the next scenario may well succeed
            sys.stderr.write(f"{name}:\n{traceback.format_exc()}")
    return False


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # an exception: brokers are stopped on the way out
    sys.exit(run(sys.argv[1:]))
