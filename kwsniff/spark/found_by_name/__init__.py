"""Shipped as the package `pyspark_kafka_capture`: by that name Spark finds the source on its own."""

from kwsniff.spark.source import CaptureSource as DefaultSource

__all__ = ["DefaultSource"]
