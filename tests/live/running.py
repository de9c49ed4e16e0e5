"""`kwsniff live` as a process, and sources that are files. Waits are for things seen, never for time to
pass."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from kwsniff.sources.live_source import LiveSource
from tests.record.mock import MockCluster
from tests.record.talks import TALKS, Report
from tests.record.tcpdump import why_not

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
BEGUN = "; Ctrl-C ends it"
# Under nohup, or in the background of a script, signals are ignored, and children inherit that.
_LAUNCH = """
import signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
from kwsniff.cli.main import run
sys.exit(run())
"""


def needs_capture() -> None:
    """Skips where this user may not capture, or there are no clients."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    pytest.importorskip("confluent_kafka")


class Live:
    """A running `kwsniff live`; its lines are there as soon as it writes them."""

    def __init__(
        self, *options: str, interface: str = "lo", before: Sequence[str] = (), read: bool = True
    ) -> None:
        command = [*before, sys.executable, "-c", _LAUNCH, "live", "-i", interface, *options]
        self.out: list[str] = []
        self.err: list[str] = []
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if read else _unread(),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self._process.stdout, self.out), (self._process.stderr, self.err))
            if pair[0]
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        self.await_line(BEGUN)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_line(self, text: str) -> str:
        """The first line on standard error that has this text."""
        self._wait(lambda: any(text in line for line in self.err), f"{text!r} was never said")
        return next(line for line in self.err if text in line)

    def await_calls(self, number: int) -> None:
        """Until so many lines of JSON have come."""
        self._wait(lambda: len(self.out) >= number, f"there never were {number} calls")

    def await_text(self, text: str) -> None:
        """Until a line on standard output has this text."""
        self._wait(lambda: any(text in line for line in self.out), f"{text!r} was never written")

    def await_all_calls(self, cluster: MockCluster) -> int:
        """Until there are as many lines as the brokers have logged requests; how many these are."""
        return self.await_all(lambda: cluster.requests().total())

    def await_all(self, logged: Callable[[], int]) -> int:
        """The same for brokers elsewhere. What a client sent last may be logged after it has ended."""
        number = -1
        while number != logged():
            number = logged()
            self.await_calls(number)
        return number

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Sends a signal and waits; the exit status."""
        self._process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Waits until it ends by itself; the exit status."""
        status = self._process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return status

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out]

    def _read(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            with self._news:
                into.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()
        stream.close()

    def _wait(self, happened: Any, otherwise: str) -> None:
        with self._news:
            self._news.wait_for(lambda: happened() or not self._alive(), PATIENCE_S)
            assert happened(), f"{otherwise}; it said {self.err} and wrote {self.out[-3:]}"

    def _alive(self) -> bool:
        return any(reader.is_alive() for reader in self._readers)


def _unread() -> int:
    """A pipe whose reader has gone."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    return write_end


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def talk(name: str, cluster: MockCluster) -> Report:
    """A client's talk from tests.record.talks; topics are made first."""
    chosen = TALKS[name]
    for topic, partitions in chosen.topics.items():
        cluster.topic(topic, partitions)
    for api_key, (lowest, highest) in chosen.versions.items():
        cluster.limit(api_key, lowest, highest)
    report = Report()
    chosen.run(cluster, report)
    return report


def ports_of(cluster: MockCluster) -> str:
    return ",".join(map(str, cluster.ports))


def table(directory: Path, name: str) -> pa.Table:
    """All files of a table, as a reader finds them that knows nothing of kwsniff."""
    import pyarrow.dataset

    rows: pa.Table = pyarrow.dataset.dataset(directory / name, format="parquet").to_table()
    return rows


class FileSource(LiveSource):
    """A LiveSource whose packets are a file's bytes, in pieces of that size."""

    tool = "file"
    captured: int | None = None  # type: ignore[assignment]
    dropped: int | None = None  # type: ignore[assignment]
    ending: str | None = None  # type: ignore[assignment]

    def __init__(self, path: Path, *, interface: str = "test0", pieces: int = 65_536) -> None:
        self.interface = interface
        # Packets of a socket keep their boundaries: whoever reads gets exactly these pieces.
        self._out, self._in = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=self._write, args=(path, pieces), daemon=True)
        self._thread.start()

    def _write(self, path: Path, pieces: int) -> None:
        data = path.read_bytes()
        with self._in, suppress(BrokenPipeError, ConnectionResetError):
            for at in range(0, len(data), pieces):
                self._in.send(data[at : at + pieces])

    def find_watermark(self, read: int, last: int | None, silent_ns: int) -> int | None:
        return last

    def fileno(self) -> int:
        return self._out.fileno()

    def request_drops(self) -> None:
        pass

    def stop(self) -> None:
        """A file ends by itself."""

    def close(self) -> None:
        self._out.close()
        self._thread.join()
