"""Starts a Spark session with kwsniff's settings. Spark is imported on first use."""

import os
import re
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kwsniff.errors import UsageError
from kwsniff.spark import register, takes_sources
from kwsniff.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.driver.memory": "1g",  # the bytes of captures never pass the JVM
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # Spark's default has no statistics
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What differs from Spark's defaults; `--conf` overrides each of them."""

_RETRIES = 4
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")


def start_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "kwsniff"
) -> "SparkSession":
    """The session that runs already, or a new one.

    `master` as Spark has it; all cores of this machine when neither it nor spark-submit says another. In
    local mode tasks that fail are tried again, as on a cluster. `conf`: name -> value, before kwsniff's own.
    Raises UsageError, in one line, when there is no pyspark or no Java.
    """
    if find_spec("pyspark") is None:
        raise UsageError(
            "pyspark is not installed; install it with: pip install '.[spark]' in a clone of the repository"
        )
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    running = SparkSession.getActiveSession()
    if running is not None:
        return _taught(running)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        _prepare_environment(is_local=(master or "local").startswith("local"))
    # Of those who submit a job, their command line decides.
    settings = {**({} if submitted else {**SETTINGS, **_quiet()}), **(conf or {})}
    builder = SparkSession.builder.appName(name)
    if master or not submitted:
        builder = builder.master(with_retries(master or "local[*]"))
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        first, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(f"Spark does not start ({first}); look at --master, --conf and JAVA_HOME") from error
    return _taught(session)


def _taught(session: "SparkSession") -> "SparkSession":
    """The session, which knows the data source where its version can."""
    if takes_sources(session):
        register(session)
    return session


def with_retries(master: str) -> str:
    """`local[N]` as `local[N,4]`: without the second number Spark tries no local task again."""
    match = _LOCAL.fullmatch(master)
    return f"local[{match[1] or 1},{_RETRIES}]" if match else master


def _quiet() -> dict[str, str]:
    """The JVM's log says errors only, from its first line on."""
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"}


def _prepare_environment(*, is_local: bool) -> None:
    home = find_java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers are the same Python
    if is_local:  # nothing listens on the network; on a cluster executors call the driver
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
