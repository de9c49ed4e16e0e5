"""Captures for Spark; its session is the one of tests/conftest.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))


@pytest.fixture(scope="session")
def capture() -> Path:
    """A recording with errors, a consumer group, several connections."""
    return ROOT / "captures" / "first_steps" / "capture.pcap"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run one after the other in this process: what they do is the same, without Spark's share."""
    from kwsniff.spark import finish, harm, pipeline, ranges, scan, stream
    from kwsniff.spark.serialization import dump, load

    def run_tasks(_: Any, work: Any, items: Any, **__: Any) -> list[Any]:
        return [load(dump(work(item))) for item in items]

    for module in (pipeline, scan, finish, harm, ranges, stream):
        monkeypatch.setattr(module, "run_tasks", run_tasks)
    monkeypatch.setattr(scan, "is_here", lambda _: True)
