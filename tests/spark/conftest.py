"""Captures for Spark; its session is the one of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.in_process import run_tasks_in_process

if TYPE_CHECKING:
    from kwsniff.spark.hadoop import Settings

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


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Of a store with S3's protocol on this machine."""
    from tests.spark.store import s3

    with s3(tmp_path_factory.mktemp("store")) as found:
        yield found
