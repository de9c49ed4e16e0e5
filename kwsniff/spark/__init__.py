"""Captures on Spark: a data source, the pipeline, streaming. pyspark is imported when it is used.

Where a session is active it learns the data source at once: `spark.read.format("kafka_capture")`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Makes `format("kafka_capture")` known to a session."""
    from kwsniff.spark.source import CaptureSource

    spark.dataSource.register(CaptureSource)


def _register_with_active_session() -> None:
    import sys

    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None:
            register(session)


_register_with_active_session()
