"""The pipeline without Spark: its tasks run one after the other in this process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def run_tasks_in_process(change: Callable[[Any, str, Any], None]) -> None:
    """`change`: sets an attribute of a module, as setattr does."""
    from kwsniff.spark import finish, harm, pipeline, ranges, scan, stream
    from kwsniff.spark.serialization import dump, load

    def run_tasks(_: Any, work: Any, items: Any, **__: Any) -> list[Any]:
        return [load(dump(work(item))) for item in items]

    for module in (pipeline, scan, finish, harm, ranges, stream):
        change(module, "run_tasks", run_tasks)
    change(scan, "is_here", lambda _: True)


def append_and_die(capture: str, output: str, form: str, tables: str, steps: int) -> None:
    """Appends a capture, and is killed (SIGKILL) when it begins the step behind so many: each table's log,
    the manifest and the removal of the intent are steps."""
    from kwsniff.spark import intent, pipeline, table_formats

    run_tasks_in_process(setattr)
    left = [steps]

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def begin(*arguments: Any, **options: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return step(*arguments, **options)

        return begin

    for module, name in (
        (table_formats, "append_version"),
        (table_formats, "append_snapshot"),
        (intent, "publish"),
    ):
        setattr(module, name, counted(getattr(module, name)))
    spark: Any = object()
    pipeline.run_pipeline(
        capture, output, spark=spark, tables=tables.split(","), num_buckets=2, form=form, mode="append"
    )


if __name__ == "__main__":
    capture, output, form, tables, steps = sys.argv[1:]
    append_and_die(capture, output, form, tables, int(steps))
