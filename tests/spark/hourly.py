"""Runs that continue where the one before ended, and are killed now and then."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import UsageError
from kwsniff.spark import table_formats
from kwsniff.spark.checkpoint import FOLLOWED
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place


class Hours:
    """A run for each piece of a capture."""

    def __init__(
        self,
        output: Any,
        state: Any,
        form: str = "parquet",
        *,
        num_buckets: int | None = 2,
        tables: Sequence[str] = FOLLOWED,
    ) -> None:
        self.output, self.state, self.form = output, state, form
        self.num_buckets, self.tables = num_buckets, tables

    def run(self, paths: Any, *, finish: bool = False, spark: Any = None, **options: Any) -> Any:
        session: Any = spark or object()
        return run_pipeline(
            paths,
            self.output,
            spark=session,
            tables=self.tables,
            num_buckets=self.num_buckets,
            form=self.form,
            mode="append",
            state=self.state,
            finish=finish,
            **options,
        )


class Killed(BaseException):
    """Instead of a signal: nothing after it happens."""


def killed_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """From the given number of writes on, of any kind, nothing is written any more."""
    left = [steps]

    def counted(owner: Any, name: str) -> None:
        change = getattr(owner, name)

        def write(*arguments: Any, **options: Any) -> Any:
            if not left[0]:
                raise OSError if threading.current_thread().name == "kwsniff-claim" else Killed
            left[0] -= 1
            return change(*arguments, **options)

        patch.setattr(owner, name, write)

    for name in ("copy", "write_text", "remove", "remove_folder", "open_output"):
        counted(Place, name)
    for name in ("append_version", "append_snapshot"):
        counted(table_formats, name)


def lives(hours: Hours, path: Any, steps: int, patch: pytest.MonkeyPatch, **options: Any) -> bool:
    """Whether a run that is killed after so many writes made fewer, or had published before."""
    with patch.context() as killing:
        killed_after(steps, killing)
        try:
            hours.run(path, **options)
        except Killed:
            return False
        except UsageError as error:  # the last run went through, but for what it tidies up
            assert "is complete after --finish" in str(error)
    return True


def run_with_deaths(hours: Hours, paths: Sequence[Any], seed: int, patch: pytest.MonkeyPatch) -> int:
    """Each run dies at writes that a seed chooses, and is repeated; how often one died."""
    dice = random.Random(seed)
    died = 0
    for path in paths:
        steps = dice.randrange(1, 60)
        while not lives(hours, path, steps, patch, finish=path == paths[-1]):
            died += 1
            steps += dice.randrange(20, 90)
    return died
