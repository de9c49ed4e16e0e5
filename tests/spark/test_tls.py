"""TLS on Spark: the pipeline, the stream and the data source give what `kwsniff analyze` gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import Tables, analyzed
from tests.pipeline.opened import facts
from tests.sources.test_tls import with_secrets
from tests.spark.test_pipeline import run, written
from tests.traffic import files, scenes, tls
from tests.traffic.files import pcap

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))

CALLS = ("api_calls", "latencies", "partitions", "connections", "anomalies")


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


def same(mine: Tables, theirs: Tables) -> None:
    for table in CALLS:
        wanted = sorted(facts(theirs[table], {"capture", "run_id"}), key=repr)
        assert sorted(facts(mine[table], {"capture", "run_id"}), key=repr) == wanted, table
    assert len(mine["api_calls"]) == 10


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
