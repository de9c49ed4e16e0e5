"""What a version of Spark can do, by its name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwsniff.spark.aggregates import has_sketches


@pytest.mark.parametrize(
    ("version", "has"),
    [("3.5.6", False), ("4.0.1", False), ("4.1.0", True), ("4.10.2", True), ("5.0.0-preview1", True)],
)
def test_sketches_are_there_from_4_1_on(version: str, has: bool) -> None:
    spark: Any = SimpleNamespace(version=version)
    assert has_sketches(spark) == has
