"""Google's and Azure's stores on loopback, by emulators that others keep; `python -m tests.spark.emulators`
fetches them (npm, go), tests skip where they are not."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kwsniff.spark.file_systems import file_system
from kwsniff.spark.storage import Place

_CACHE = Path(os.environ.get("KWSNIFF_EMULATORS", Path.home() / ".cache" / "kwsniff" / "emulators"))
_AZURITE = _CACHE / "node_modules" / ".bin" / "azurite-blob"
_FAKE_GCS = _CACHE / "fake-gcs-server"
_PATIENCE_S = 60
_ACCOUNT = "devstoreaccount1"
# Azurite's documented key: it is the same everywhere, and no secret.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def google(folder: Path) -> Iterator[Place]:
    """An empty bucket."""
    port = _free_port()
    address = f"127.0.0.1:{port}"
    options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    with _running([str(_FAKE_GCS), *options, "-public-host", address], port, folder):
        name = f"b{uuid.uuid4().hex[:20]}"
        connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
        body = json.dumps({"name": name})
        connection.request("POST", "/storage/v1/b", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()
        settings = (("fs.gs.storage.root.url", f"http://{address}"), ("fs.gs.auth.type", "UNAUTHENTICATED"))
        yield Place(f"gs://{name}", settings)


@contextmanager
def azure(folder: Path) -> Iterator[Place]:
    """An empty container."""
    port = _free_port()
    command = [str(_AZURITE), "--silent", "--inMemoryPersistence", "--blobPort", str(port)]
    with _running([*command, "--skipApiVersionCheck", "--disableTelemetry"], port, folder):
        account = f"{_ACCOUNT}.dfs.core.windows.net"
        settings = (
            (f"fs.azure.account.key.{account}", _KEY),
            ("fs.azure.abfs.endpoint", f"127.0.0.1:{port}"),
        )
        name = f"c{uuid.uuid4().hex[:20]}"
        uri = f"abfs://{name}@{account}"
        file_system(uri, settings)[0].create_dir(name)
        yield Place(uri, settings)


@contextmanager
def _running(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """Until it answers, and then as long as somebody needs it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{Path(command[0]).name} is not there; `python -m tests.spark.emulators` fetches it")
    log = folder / "emulator.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=folder)
    try:
        until = time.monotonic() + _PATIENCE_S
        while not _answers(port):
            started = process.poll() is None and time.monotonic() < until
            assert started, f"it does not start: {log.read_text('utf-8', 'replace')[-2000:]}"
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _fetch() -> None:
    _CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--prefix", str(_CACHE), "azurite@3"], check=True)
    environment = {**os.environ, "GOBIN": str(_CACHE)}
    command = ["go", "install", "github.com/fsouza/fake-gcs-server@v1"]
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    _fetch()
