"""A standalone cluster: a master, and workers that do not see one folder of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_PATIENCE_S = 120


@contextmanager
def cluster(folder: Path, *, hidden: Path, workers: int = 1) -> Iterator[str]:
    """The master's URL. In each worker's mount namespace an empty file system lies over `hidden`."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    if os.geteuid() != 0:
        pytest.skip("a mount namespace for the worker needs root")
    private = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden)]
    try:
        tried = subprocess.run([*private, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"a mount namespace cannot be made here: {error}")
    if tried.returncode:
        pytest.skip(f"a mount namespace cannot be made here: {tried.stderr.strip()}")
    from kwsniff.spark.java import find_java_home

    home = find_java_home()
    environment = {
        **os.environ,
        **({"JAVA_HOME": home} if home else {}),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    start = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), "org.apache.spark.deploy"]
    master = [f"{start[1]}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    worker = [
        f"{start[1]}.worker.Worker",
        "--cores",
        str(2 // workers),
        "--memory",
        "1g",
        "--webui-port",
        "0",
    ]
    running: list[subprocess.Popen[bytes]] = []
    try:
        url = _start([start[0], *master], folder / "master", environment, running, r"spark://[\d.]+:\d+")
        for number in range(workers):
            _start(
                [*private, start[0], *worker, url],
                folder / f"worker-{number}",
                {**environment, "SPARK_WORKER_DIR": str(folder / f"work-{number}")},
                running,
                r"registered with master",
            )
        yield url
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(
    command: list[str],
    log: Path,
    environment: dict[str, str],
    running: list[subprocess.Popen[bytes]],
    awaited: str,
) -> str:
    """Starts a part of it, in a process group of its own, and waits for these words in its log."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    running.append(process)
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(awaited, log.read_text("utf-8", "replace")):
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"it does not start: {log.read_text('utf-8', 'replace')[-2000:]}")
