"""An S3 on loopback, in a process of its own, and the settings with which Spark's Hadoop would reach it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from kwsniff.spark.file_systems import file_system
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.storage import Place
from tests.spark.compare import Rows

_PATIENCE_S = 60


@contextmanager
def s3(folder: Path, refused: float = 0) -> Iterator[Settings]:
    """Hadoop's settings for it. `refused`: see slow_store.py."""
    pytest.importorskip("moto.server", reason="moto's server is not installed")
    log = folder / "moto.log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        if refused:
            command = [sys.executable, "-m", "tests.spark.slow_store", str(refused)]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + _PATIENCE_S
        found = None
        while found is None and time.monotonic() < until and process.poll() is None:
            time.sleep(0.2)
            found = re.search(r"Running on http://127\.0\.0\.1:(\d+)", log.read_text("utf-8", "replace"))
        assert found, log.read_text("utf-8", "replace")
        yield (
            ("fs.s3a.access.key", "somebody"),
            ("fs.s3a.secret.key", "something"),
            ("fs.s3a.endpoint", f"http://127.0.0.1:{found[1]}"),
            ("fs.s3a.endpoint.region", "us-east-1"),
            ("fs.s3a.path.style.access", "true"),
        )
    finally:
        process.kill()
        process.wait()


def new_bucket(settings: Settings) -> Place:
    """An empty one."""
    known = dict(settings)
    files = pafs.S3FileSystem(
        access_key=known["fs.s3a.access.key"],
        secret_key=known["fs.s3a.secret.key"],
        endpoint_override=known["fs.s3a.endpoint"],
        region=known["fs.s3a.endpoint.region"],
        allow_bucket_creation=True,
    )
    name = f"b{uuid.uuid4().hex[:20]}"
    files.create_dir(name)
    return Place(f"s3a://{name}", settings)


def put(store: Place, name: str, data: bytes) -> str:
    """A file of that name; its URI."""
    files, root = file_system(store.root, store.settings)
    with files.open_output_stream(f"{root}/{name}", compression=None) as file:  # whatever the name says
        file.write(data)
    return f"{store.root}/{name}"


def as_if_local(found: Rows, store: Place, folder: Path) -> Rows:
    """Rows that name the files of the store as those of the folder."""
    text = re.compile(re.escape(f"{store.root}/"))

    def local(value: Any) -> Any:
        if isinstance(value, str):
            return text.sub(f"{folder}/", value)
        return [*map(local, value)] if isinstance(value, list) else value

    made = {
        table: [{name: local(value) for name, value in row.items()} for row in rows]
        for table, rows in found.items()
    }
    return {table: sorted(rows, key=repr) for table, rows in made.items()}
