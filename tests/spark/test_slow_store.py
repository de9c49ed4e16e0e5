"""A store under load, which refuses three of ten requests: every file arrives, and is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import UsageError
from kwsniff.spark import file_systems, staging
from kwsniff.spark import s3 as s3_file_systems
from kwsniff.spark.file_systems import file_system
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.tables.schema import TABLES
from tests.spark.compare import analyzed_once
from tests.spark.slow_store import SLOW
from tests.spark.store import new_bucket, put, s3
from tests.spark.test_store import named

CAPTURE = Path(__file__).parents[2] / "captures" / "transactions" / "capture.pcap"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Settings]:
    with s3(tmp_path, refused=0.3) as settings:
        yield settings


def count_refusals(log: Path) -> int:
    return log.read_text().count(" 503 ")


@pytest.mark.slow
def test_a_request_that_is_refused_is_repeated(store: Settings, tmp_path: Path) -> None:
    """With one attempt some are lost, as arithmetic says: 24 requests, each refused with 0.3."""
    bucket = new_bucket(store).inside(SLOW)
    for number in range(12):
        put(bucket, f"{number}.bin", bytes([number]) * 1000)
    files, root = file_system(bucket.root, store)
    for number in range(12):
        with files.open_input_file(f"{root}/{number}.bin") as file:
            assert bytes(file.read()) == bytes([number]) * 1000
    assert count_refusals(tmp_path / "moto.log") > 3
    files, root = file_system(bucket.root, (*store, ("fs.s3a.attempts.maximum", "1")))
    with pytest.raises(OSError, match="AWS Error"):
        for number in range(12):
            with files.open_input_file(f"{root}/{number}.bin") as file:
                file.read()


def test_a_store_that_is_not_there_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question has few attempts; what it asks with many is never reached."""
    asked: list[int] = []
    real = s3_file_systems.make_client

    def counted(attempts: int, given: Any) -> Any:
        asked.append(attempts)
        return real(1, given)

    monkeypatch.setattr(s3_file_systems, "make_client", counted)
    nowhere = (
        ("fs.s3a.access.key", "a"),
        ("fs.s3a.secret.key", "b"),
        ("fs.s3a.endpoint", "http://127.0.0.1:9"),
        ("fs.s3a.endpoint.region", "us-east-1"),
    )
    file_systems._open.cache_clear()
    with pytest.raises(OSError, match="NETWORK_CONNECTION"):
        file_system("s3a://bucket/x", nowhere)
    assert asked == [3]


def test_a_number_of_attempts_that_is_none_is_said() -> None:
    wrong = (("fs.s3a.attempts.maximum", "many"),)
    with pytest.raises(UsageError, match=r"fs\.s3a\.attempts\.maximum is 'many'; give a number of 1 or more"):
        file_system("s3a://bucket/x", wrong)


@pytest.mark.slow
def test_a_run_over_a_store_that_refuses_gives_all_rows(
    store: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: None
) -> None:
    monkeypatch.setattr(staging, "settings_for", lambda *_: store)
    output = new_bucket(store).inside(f"{SLOW}/tables")
    run_pipeline(CAPTURE, output.root, spark=object(), tables=tuple(TABLES), num_buckets=2)  # type: ignore[arg-type]
    assert count_refusals(tmp_path / "moto.log") > 30
    assert named(output) == analyzed_once(CAPTURE)
