"""One small Spark session for all of these tests, and captures to feed it."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwsniff.errors import UsageError

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2] with kwsniff's settings."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    from kwsniff.spark.java import find_java_home
    from kwsniff.spark.session import start_session

    try:
        find_java_home()
    except UsageError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = start_session("local[2]", conf, "kwsniff-tests")
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def capture() -> Path:
    """A recording with errors, a consumer group, several connections."""
    return ROOT / "captures" / "first_steps" / "capture.pcap"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run one after the other in this process: what they do is the same, without Spark's share."""
    from kwsniff.spark import finish, pipeline, scan, stream

    def run_tasks(_: Any, work: Any, items: Any, **__: Any) -> list[Any]:
        return [work(item) for item in items]

    for module in (pipeline, scan, finish, stream):
        monkeypatch.setattr(module, "run_tasks", run_tasks)
