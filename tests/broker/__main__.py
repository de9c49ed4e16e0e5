"""`python -m tests.broker [SCENARIO...]`: records the named scenarios (all of them) into captures/."""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.broker import artifacts, requestlog
from tests.broker.about import about
from tests.broker.stage import SCENARIOS, Stage
from tests.record.scrub import scrubbed
from tests.record.tcpdump import why_not

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
PLAYS = ("clients", "admin", "cluster", "zookeeper")
LARGEST = 400_000


def record(name: str) -> str:
    """Plays one scenario and keeps what was recorded: one line about it."""
    scene = SCENARIOS[name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        fresh = Path(folder) / scene.file
        stage = Stage(Path(folder) / "servers", fresh, scene.snaplen, scene.interface)
        stage.folder.mkdir()
        scene.play(stage)
        if stage.cluster is None:
            raise RuntimeError(f"{name} started no brokers")
        logged = requestlog.rows(stage.cluster.request_logs(), stage.begin, stage.end)
        logged = [row for row in logged if row.broker_port in stage.ports]
        data = fresh.read_bytes()
        if len(data) > LARGEST:
            raise RuntimeError(f"{name}: {len(data)} bytes are too many to keep")
        kept = CAPTURES / name
        kept.mkdir(exist_ok=True)
        (kept / scene.file).write_bytes(scrubbed(data) if scene.file.endswith(".pcapng") else data)
        requestlog.written(kept / "witness.tsv", logged)
        (kept / "about.toml").write_text(about(name, scene, stage, logged))
    seconds = time.monotonic() - started
    return f"{name}: {len(data)} bytes, {len(logged)} requests, {stage.report}, {seconds:.0f} s\n"


def run(arguments: list[str]) -> int:
    reason = artifacts.why_not() or why_not()
    if reason:
        sys.stderr.write(f"cannot record: {reason}\n")
        return 2
    for play in PLAYS:
        importlib.import_module(f"tests.broker.{play}")
    failed = False
    for name in arguments or sorted(SCENARIOS):
        failed |= not attempted(name)
    return int(failed)


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
    sys.exit(run(sys.argv[1:]))
