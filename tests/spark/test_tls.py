"""TLS on Spark: the pipeline, the stream and the data source give what `kwsniff analyze` gives."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import Tables, analyzed
from tests.pipeline.opened import facts
from tests.sources.test_tls import with_secrets
from tests.spark.compare import followed
from tests.spark.compare import written as stored
from tests.spark.followed import Growing, of_this_folder, pieces
from tests.spark.test_pipeline import run, written
from tests.traffic import files, scenes, tls
from tests.traffic.files import pcap

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))

CAPTURES = Path(__file__).parents[2] / "captures"
CALLS = ("api_calls", "latencies", "partitions", "connections", "anomalies")


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


def same(mine: Tables, theirs: Tables) -> None:
    for table in CALLS:
        wanted = sorted(facts(theirs[table], {"capture", "run_id"}), key=repr)
        assert sorted(facts(mine[table], {"capture", "run_id"}), key=repr) == wanted, table
    assert len(mine["api_calls"]) == 10


@pytest.mark.sample(1)
@pytest.mark.parametrize("num_buckets", [1, 3])
def test_the_pipeline_opens_what_analyze_opens(
    in_process: None, tmp_path: Path, keys: tls.KeyLog, num_buckets: int
) -> None:
    packets = keys.encrypt(scenes.two_clients(), tls.VERSIONS[1]).packets()
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(files.frames(packets)))
    run(path, tmp_path / "out", num_buckets=num_buckets, tls_keylog=keys.path)
    theirs = analyzed(path, tls_keylog=keys.path)
    mine = written(tmp_path / "out")
    same(mine, theirs)
    assert [row["notes"] for row in mine["captures"]] == [row["notes"] for row in theirs["captures"]]


def test_secrets_inside_a_capture_reach_every_bucket(
    in_process: None, tmp_path: Path, keys: tls.KeyLog
) -> None:
    packets = keys.encrypt(scenes.two_clients(), tls.VERSIONS[0]).packets()
    path = tmp_path / "tls.pcapng"
    path.write_bytes(with_secrets(files.pcapng(files.frames(packets)), keys.path.read_bytes()))
    run(path, tmp_path / "out", num_buckets=3)
    same(written(tmp_path / "out"), analyzed(path))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["tls_1_2", "tls_key_update"])
def test_a_stream_that_dies_on_the_way_opens_what_analyze_opens(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Rotated files that grow; states between them hold how far records had come, and no secrets."""
    keylog = CAPTURES / name / "keys.log"
    paths = pieces(name, 3, tmp_path)
    growing = Growing(tmp_path, 2, 2, tls_keylog=keylog)
    growing.write([(path.name, path.read_bytes()) for path in paths])
    kept = b"".join(path.read_bytes() for path in (growing.output / "_stream").iterdir() if path.is_file())
    growing.finish(monkeypatch)
    found = of_this_folder(stored(growing.output), growing.directory)
    wanted = of_this_folder(followed(*paths, tls_keylog=keylog), tmp_path / "whole")
    for table in CALLS:
        assert found[table] == wanted[table], table
    assert len(found["api_calls"]) > 20
    secrets = [line.split()[2] for line in keylog.read_text().splitlines() if line.count(" ") == 2]
    assert secrets
    assert not any(bytes.fromhex(each) in kept or each.encode() in kept for each in secrets)


@pytest.mark.slow
def test_the_data_source_opens_what_analyze_opens(spark: Any) -> None:
    folder = CAPTURES / "tls_key_update"
    read = spark.read.format("kafka_capture").options(tls_keylog=str(folder / "keys.log"))
    found = read.load(str(folder / "capture.pcap")).groupBy("api_name").count().collect()
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    assert {row["api_name"]: row["count"] for row in found} == about["requests"]
