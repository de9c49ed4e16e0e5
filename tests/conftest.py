"""Fixtures every room's tests share."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite(
    "tests.pipeline.compare"
)  # before any test imports it: lets it explain what differed

_SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material beside the checkout; tests that need it skip where it is not there."""
    if not _SHARED.is_dir():
        pytest.skip("reference material (../shared) is not beside this checkout")
    return _SHARED


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2] with kwsniff's settings. A process has one session: nobody else may start or stop one."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    from kwsniff.errors import UsageError
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
