"""Captures for Spark; its session is the one of tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.in_process import run_tasks_in_process

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
    run_tasks_in_process(monkeypatch.setattr)
