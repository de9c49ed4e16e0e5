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

import pyarrow.fs as pafs
import pytest

from kwsniff.spark.file_systems import Settings
from kwsniff.spark.storage import Place

_PATIENCE_S = 60


@contextmanager
def s3(folder: Path) -> Iterator[Settings]:
    """Hadoop's settings for it."""
    pytest.importorskip("moto.server", reason="moto's server is not installed")
    log = folder / "moto.log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
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
