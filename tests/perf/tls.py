"""`python -m tests.perf.tls [--size MB] [--rounds N]`: the same calls inside TLS and in the clear, tshark.

Processor seconds of whole processes, the least of some rounds in turns; without what starting takes, which is
measured by an empty capture.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.perf.measure import Measured, least, process
from tests.traffic import files, messages, tls
from tests.traffic.files import pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Scene

SIZES = (100, 1_000, 10_000, 100_000)
CONNECTIONS = 8


def scene_of(size: int, calls: int) -> Scene:
    """Produce requests of so many bytes, and their answers, on some connections."""
    scene = Scene()
    data = batch([bytes(range(256)) * (size // 256 + 1)])[: max(size, 80)]
    for number in range(CONNECTIONS):
        script = scene.connection(mss=1448)
        script.open(at=number * MICROSECOND)
        for call in range(1, calls // CONNECTIONS + 1):
            at = 9 * MILLISECOND + call * 2 * MILLISECOND + number * 100 * MICROSECOND
            script.call(messages.produce(7, call, {"orders": {0: data}}), at=at, answer_at=at + MILLISECOND)
    return scene


def run(path: Path, folder: Path, *options: str) -> Measured:
    command = [sys.executable, "-m", "kwsniff", "analyze", str(path), "-o", str(folder / "out"), *options]
    return process(command, folder / "said")


def opened_by_tshark(path: Path, keys: Path, folder: Path) -> Measured:
    fields = ("frame.number", "kafka.api_key", "kafka.correlation_id")
    command = ["tshark", "-n", "-r", str(path), "-o", f"tls.keylog_file:{keys}", "-d", "tcp.port==9092,tls"]
    command += ["-d", "tls.port==9092,kafka", "-Y", "kafka", "-T", "fields"]
    return process([*command, *(word for field in fields for word in ("-e", field))], folder / "said")


def main() -> None:
    """Prints a row per size of messages and version of TLS."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=float, default=24.0, help="megabytes of messages")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sys.stdout.write(f"{'messages':<20}{'plain s':>9}{'TLS s':>9}{'ratio':>8}{'tshark s':>10}{'to TLS':>8}\n")
    with tempfile.TemporaryDirectory(prefix="kwsniff-") as name:
        folder = Path(name)
        keys = tls.KeyLog(folder)
        none = folder / "none.pcap"
        none.write_bytes(pcap([]))
        idle = least([run(none, folder) for _ in range(options.rounds)]).processor_seconds
        for size in SIZES:
            plain = scene_of(
                size, int(options.size * 1e6 / max(size + 200, 500)) // CONNECTIONS * CONNECTIONS
            )
            for version in tls.VERSIONS:
                row(folder, keys, plain, version, (size, idle, options.rounds))


def row(folder: Path, keys: tls.KeyLog, plain: Scene, version: object, how: tuple[int, float, int]) -> None:
    """Measures one of them."""
    size, idle, rounds = how
    clear, sealed = folder / "plain.pcap", folder / "tls.pcap"
    clear.write_bytes(pcap(files.frames(plain.packets())))
    sealed.write_bytes(pcap(files.frames(keys.encrypt(plain, version).packets())))  # type: ignore[arg-type]
    runs: tuple[list[Measured], list[Measured]] = ([], [])
    for _ in range(rounds):
        runs[0].append(run(clear, folder))
        runs[1].append(run(sealed, folder, "--tls-keylog", str(keys.path)))
    mine, theirs = (least(each).processor_seconds - idle for each in runs)
    by_tshark = opened_by_tshark(sealed, keys.path, folder) if shutil.which("tshark") else None
    text = (
        f"{size:>7} B, {str(version).rsplit('.', 1)[-1]:<8}{mine:>10.2f}{theirs:>9.2f}{theirs / mine:>8.2f}"
    )
    if by_tshark:
        seconds = by_tshark.processor_seconds
        text += f"{seconds:>10.2f}{seconds / theirs:>8.1f}"
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
