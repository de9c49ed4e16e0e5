"""A small HDFS on loopback, in a process of its own: Hadoop's own name node and data node, from Maven."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwsniff.spark.storage import Place

_VERSION = "3.4.2"
_CACHE = Path(os.environ.get("KWSNIFF_HADOOP", Path.home() / ".cache" / "kwsniff" / "hadoop"))
_PATIENCE_S = 300
_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>none</artifactId><version>1</version>
<dependencies>
<dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>{_VERSION}</version>
</dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""


@contextmanager
def hdfs(folder: Path) -> Iterator[Place]:
    """Its root."""
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    told, log = folder / "hadoop.xml", folder / "hadoop.log"
    command = [
        "java", "-Xmx256m", "-cp", f"{_jars()}/*", "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
        "-nomr", "-format", "-datanodes", "1", "-writeConfig", str(told), f"-Dhadoop.tmp.dir={folder}",
    ]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=folder)
    try:
        yield Place(_address(process, told, log))
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], told: Path, log: Path) -> str:
    """What the configuration says that the cluster writes when it is up."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        text = told.read_text("utf-8", "replace") if told.exists() else ""
        if text.rstrip().endswith("</configuration>"):
            found = re.search(r"<name>fs\.defaultFS</name><value>(hdfs://[^<]+)</value>", text)
            assert found, text
            return found[1].rstrip("/")
        time.sleep(0.2)
    raise AssertionError(f"it does not start: {log.read_text('utf-8', 'replace')[-2000:]}")


def _jars() -> Path:
    """The folder with Hadoop's jars, fetched if need be."""
    folder = _CACHE / _VERSION
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_POM)
        command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
        subprocess.run([*command, "-DoutputDirectory=lib"], check=True, timeout=_PATIENCE_S, cwd=folder)
        (folder / "complete").touch()
    return folder / "lib"
