"""Fixtures every room's tests share."""

import os
import shutil
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import short_run

# How fast examples come says what else the machine does, nothing of kwsniff.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")

pytest.register_assert_rewrite(
    "tests.pipeline.compare"
)  # before any test imports it: lets it explain what differed

SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ONE_PROCESS = "spark"
_LIVE = "live"
_LONGEST_NAME = 200
_SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--whole`."""
    short_run.add_option(parser)


def pytest_report_header(config: pytest.Config) -> str:
    """Whether the run is short or whole."""
    return short_run.describe(config)


def pytest_configure(config: pytest.Config) -> None:
    """KWSNIFF_SKIPPED=FILE: what skips is written there; `pytest @FILE` runs it where what it lacked is.

    Spark's Java processes live for seconds here: with one compiler and one collector they take half the time.
    """
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
        os.environ.setdefault(name, SHORT_LIVED_JAVA)
    path = os.environ.pop("KWSNIFF_SKIPPED", None)  # processes that tests start do not write there, too
    if path:
        config.pluginmanager.register(_Skips(Path(path)))


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """A long text is named by its length and checksum: processes of a run send names to each other."""
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    data = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
    return f"{argname} {len(val)} {zlib.crc32(data):08x}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what a short run does not run. With several processes, one has all tests that need a session
    of Spark, which takes a gigabyte, and one all that record, which would hear each other.
    """
    short_run.leave_out(config, items)
    if "PYTEST_XDIST_WORKER" in os.environ:  # the longest ones first: at the end no process waits for another
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(_ONE_PROCESS))
        elif item.get_closest_marker("live"):
            item.add_marker(pytest.mark.xdist_group(_LIVE))


class _Skips:
    """The names of modules and tests that were skipped, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: set[str] = set()  # each of several processes collects, and tells
        path.write_text("", "utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        test, bracket, rest = report.nodeid.rpartition("]")
        name = test + bracket + rest.partition("@")[0]  # xdist adds the group
        if report.skipped and not hasattr(report, "wasxfail") and name not in self._noted:
            self._noted.add(name)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")


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
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = start_session("local[2]", conf, "kwsniff-tests")
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
    shutil.rmtree(folder, ignore_errors=True)
