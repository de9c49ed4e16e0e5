"""Every block of docs/spark.md runs as it stands; only names of machines and folders are those of here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow.dataset as ds
import pytest
import zstandard

pytest.importorskip("pyspark", reason="pyspark is not installed")

from kwsniff.spark.hadoop import Settings
from kwsniff.spark.java import find_java_home
from tests.house.tree import DOCS, ROOT

pytestmark = pytest.mark.slow

_BLOCK = re.compile(r"^```(sh|python|sql)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = _BLOCK.findall((DOCS / "spark.md").read_text("utf-8"))
CAPTURES = ROOT / "captures"
FIRST, OTHER = CAPTURES / "first_steps" / "capture.pcap", CAPTURES / "transactions" / "capture.pcap"
NEXT_DAY = CAPTURES / "incidents" / "broker_stalled" / "broker.pcap"


def blocks(language: str, *words: str) -> list[str]:
    """Those of a language with all of these words."""
    return [text for kind, text in BLOCKS if kind == language and all(word in text for word in words)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The captures that the page names."""
    for name, capture in (
        ("rotated/one.pcap", FIRST), ("rotated/two.pcap", OTHER), ("day1.pcap", FIRST), ("huge.pcap", FIRST),
        ("monday/a.pcap", FIRST), ("tuesday/b.pcap", NEXT_DAY), ("a.pcap", FIRST),
        ("var/broker1.pcap", FIRST), ("var/broker2.pcap", OTHER),
        ("recorders/one/a.pcap", FIRST), ("recorders/two/b.pcap", OTHER),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(capture, tmp_path / name)
    for name in ("day2.pcap.zst", "b.pcap.zst"):
        (tmp_path / name).write_bytes(zstandard.compress(OTHER.read_bytes()))
    return tmp_path


def run(
    folder: Path,
    script: str,
    *,
    program: tuple[str, ...] = ("bash", "-euc"),
    more: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What a script writes, in the environment of an activated `venv`."""
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", **more}
    environment["VIRTUAL_ENV"] = str(here.parent)
    if home := find_java_home():
        environment["JAVA_HOME"] = home
    done = subprocess.run(
        [*program, script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(folder: Path, table: str = "api_calls") -> int:
    found: int = ds.dataset(folder / table, partitioning="hive").count_rows()
    return found


def calls_of(*captures: Path) -> int:
    """By `kwsniff analyze`, the first witness of all that Spark writes."""
    import kwsniff

    return sum(kwsniff.analyze(capture).api_calls.num_rows for capture in captures)


def test_every_block_is_tried_by_one_of_these_tests() -> None:
    tried = [
        *blocks("sh", "rotated/ -o tables/", "--conf"), *blocks("sh", "job.py"),
        *blocks("python", "start_session("), *blocks("sh", "--format delta"), *blocks("sh", "s3a://"),
        *blocks("python", "pyarrow.fs"), *blocks("sql", "kll_"), *blocks("sh", "tcpdump"),
        *blocks("sh", "--source"), *blocks("python", 'format("kafka_capture")'),
    ]  # fmt: skip
    assert sorted(tried) == sorted(text for _, text in BLOCKS)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_pipeline_runs_on_files_of_any_order(folder: Path, place: int) -> None:
    (block,) = blocks("sh", "rotated/ -o tables/", "--conf")
    line = block.splitlines()[place].replace("spark://host:7077", "local[2]")
    run(folder, line)
    captures = ((FIRST, OTHER), (FIRST, OTHER), (FIRST,))[place]
    assert rows(folder / "tables") == calls_of(*captures)


def test_a_job_for_spark_submit(folder: Path) -> None:
    (block,) = blocks("sh", "job.py")
    run(folder, block.replace("spark://host:7077", "local[2]").replace("/shared/", "shared/"))
    assert rows(folder / "shared/tables") == calls_of(FIRST, OTHER)


def test_a_session_of_ones_own(folder: Path) -> None:
    (block,) = blocks("python", "start_session(")
    said = run(folder, block, program=(sys.executable, "-c"))
    assert f"'api_calls': {calls_of(FIRST, OTHER)}" in said


def test_an_append_and_a_day_that_is_read_again(folder: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    from deltalake import DeltaTable

    (block,) = blocks("sh", "--format delta")
    run(folder, block)
    assert DeltaTable(str(folder / "lake/api_calls")).to_pyarrow_table().num_rows == calls_of(FIRST, NEXT_DAY)


@pytest.mark.parametrize(
    ("words", "name"),
    [(("endpoint=http://minio:9000",), "day1/a.pcap.zst"), (("--state",), "hour=07/a.pcap")],
)
def test_a_store_and_its_manifest(
    folder: Path, settings: Settings, words: tuple[str, ...], name: str
) -> None:
    import pyarrow.fs as pafs

    known = dict(settings)
    keys = {"access_key": known["fs.s3a.access.key"], "secret_key": known["fs.s3a.secret.key"]}
    endpoint = known["fs.s3a.endpoint"]
    store = pafs.S3FileSystem(
        **keys, endpoint_override=endpoint, region="us-east-1", allow_bucket_creation=True
    )
    for bucket in ("captures", "traffic"):
        store.create_dir(bucket)
        store.delete_dir_contents(bucket)
    data = FIRST.read_bytes()
    with store.open_output_stream(f"captures/{name}", compression=None) as file:
        file.write(zstandard.compress(data) if name.endswith(".zst") else data)
    (line,), (block,) = blocks("sh", "s3a://", *words), blocks("python", "pyarrow.fs")
    signed = {
        "AWS_ACCESS_KEY_ID": keys["access_key"], "AWS_SECRET_ACCESS_KEY": keys["secret_key"],
        "AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    run(folder, line.replace("http://minio:9000", endpoint), more=signed)
    said = run(folder, f"{block}\nprint(calls.num_rows)", program=(sys.executable, "-c"), more=signed)
    assert int(said) == calls_of(FIRST)


def test_percentiles_of_sketches_are_near_those_of_the_rows(folder: Path) -> None:
    (query,) = blocks("sql", "kll_")
    run(folder, "kwsniff pipeline huge.pcap -o tables --master 'local[2]'")
    day = next((folder / "tables/latency_minutes").glob("date=*")).name.partition("=")[2]
    assert "2026-11-20" in query
    script = (
        "from kwsniff.spark.session import start_session\n"
        f"rows = start_session('local[2]', {{}}).sql('''{query.replace('2026-11-20', day)}''').collect()\n"
        "print({row.api_name: row.p99_ms for row in rows})"
    )
    found = eval(run(folder, script, program=(sys.executable, "-c")))  # noqa: S307 - our own
    latencies = ds.dataset(folder / "tables/latencies", partitioning="hive").to_table().to_pandas()
    fetches = latencies[latencies["api_name"] == "Fetch"]["total_ns"].sort_values()
    low, high = fetches.quantile(0.9) / 1e6, fetches.max() / 1e6
    assert low <= found["Fetch"] <= high * 1.001


@pytest.mark.parametrize("words", [("tcpdump",), ("--source",)])
def test_a_stream_continues_until_it_is_stopped(folder: Path, words: tuple[str, ...]) -> None:
    (block,) = blocks("sh", *words)
    for line in block.splitlines():
        if line.startswith("kwsniff"):  # the recorder is not kwsniff's
            where = "recorders" if "'*/'" in line else "var"
            shutil.rmtree(folder / "tables", ignore_errors=True)
            command = line.partition("   #")[0].replace("/var/captures", where)
            run(folder, f"{command} --once --finish")
            assert rows(folder / "tables") == calls_of(FIRST, OTHER)


def test_the_data_source(folder: Path) -> None:
    (block,) = blocks("python", 'format("kafka_capture")')
    begin = "from kwsniff.spark.session import start_session\nspark = start_session('local[2]', {})\n"
    said = run(
        folder, f"{begin}{block}\nprint(calls.count(), errors.count())", program=(sys.executable, "-c")
    )
    import kwsniff

    errors = kwsniff.analyze([FIRST, OTHER]).error_codes.num_rows
    assert said.split()[-2:] == [str(calls_of(FIRST, OTHER)), str(errors)]
