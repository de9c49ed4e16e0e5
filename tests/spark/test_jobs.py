"""Tasks on Spark: every item once, whatever dies on the way; the files of a run, whole or not at all."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.analyzer", reason="the core is not built")

from kwsniff.errors import CaptureError, OutputError
from kwsniff.spark.jobs import collect_rows, run_tasks
from kwsniff.spark.parts import Part
from kwsniff.spark.staging import Staging
from kwsniff.tables.folder import MANIFEST
from kwsniff.tables.lock import take_lock
from tests.spark import dying


@pytest.fixture(autouse=True)
def by_value() -> None:
    """Workers need not be able to import the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(dying)


def test_results_come_in_the_order_of_the_items_when_a_task_dies(spark: Any, tmp_path: Path) -> None:
    assert run_tasks(spark, partial(dying.double_then_die, folder=str(tmp_path)), range(4)) == [0, 2, 4, 6]
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("run-1-")]) == 2


def test_nothing_to_do_needs_no_spark() -> None:
    assert run_tasks(None, len, []) == []  # type: ignore[arg-type]


def test_an_error_that_trying_again_cannot_mend_is_raised_as_it_is(spark: Any) -> None:
    def work(_: int) -> int:
        raise CaptureError("x.pcap: is no capture")

    with pytest.raises(CaptureError, match=r"^x\.pcap: is no capture$"):
        run_tasks(spark, work, [1])


@pytest.mark.slow
def test_other_errors_are_one_line_after_the_last_attempt(spark: Any, tmp_path: Path) -> None:
    def work(_: int) -> int:
        with (tmp_path / "attempts").open("a") as file:
            file.write("x")
        raise ValueError("what was that")

    with pytest.raises(OutputError, match=r"retries: ValueError: what was that$"):
        run_tasks(spark, work, [1])
    assert (tmp_path / "attempts").read_text() == "xxxx"


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("ValueError: what was that", "ValueError: what was that"),
        (
            "ModuleNotFoundError: No module named 'kwsniff'",
            "No module named 'kwsniff' on the workers: install it there",
        ),
        ("ModuleNotFoundError: No module named 'other'", "ModuleNotFoundError: No module named 'other'"),
    ],
)
def test_what_spark_puts_around_an_error_is_left_out(last: str, says: str) -> None:
    """As sessions over Spark Connect 4.3 tell it, see test_connect.py; classic ones add the JVM's stack."""
    told = f"[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback:\n  File\n{last}\n"

    class Refused:
        def __init__(self, text: str) -> None:
            self.text = text

        def collect(self) -> list[Any]:
            raise RuntimeError(self.text)

    for text in (
        told,
        f"{told} SQLSTATE: 38000\n",
        f"{told} SQLSTATE: 38000\n\tat org.apache\n\tat java.base\n",
    ):
        with pytest.raises(OutputError) as raised:
            collect_rows(Refused(text))  # type: ignore[arg-type]
        assert str(raised.value).startswith("a Spark task failed after all retries: ")
        assert says in str(raised.value)
        assert "SQLSTATE" not in str(raised.value)


def write(staging: Staging, text: str) -> Part:
    with staging.place.open_output("api_calls/part") as file:
        pq.write_table(pa.table({"text": [text]}), file)
        return Part("api_calls", "api_calls/part", 1, file.tell())


def written(staging: Staging, text: str) -> None:
    staging.commit([write(staging, text)], {"rows": {}})


def text_in(folder: Path) -> str:
    (text,) = pq.read_table(folder / "out" / "api_calls" / "part")["text"].to_pylist()
    return str(text)


def test_a_run_replaces_the_one_before(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with Staging(tmp_path / "out") as staging:
            written(staging, text)
    assert text_in(tmp_path) == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_that_fails_leaves_the_one_before_as_it_was(tmp_path: Path) -> None:
    with Staging(tmp_path / "out") as staging:
        written(staging, "one")
    with pytest.raises(ZeroDivisionError), Staging(tmp_path / "out") as staging:
        write(staging, "two")
        raise ZeroDivisionError
    assert text_in(tmp_path) == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_run_left_is_removed_and_a_running_one_is_let_be(tmp_path: Path) -> None:
    dead, alive = (tmp_path / f".out.kwsniff-{number:032x}" for number in range(2))
    for folder in (dead, alive):
        folder.mkdir()
    lock = take_lock(alive)
    with Staging(tmp_path / "out"):
        assert not dead.exists()
        assert alive.exists()
    assert lock is not None
    lock.release()


@pytest.mark.parametrize("name", ["letter.txt", "api_calls.parquet"])
def test_a_folder_with_other_things_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).touch()
    with (
        pytest.raises(OutputError, match="did not write; choose a new or empty folder"),
        Staging(tmp_path / "out"),
    ):
        pass
    assert (tmp_path / "out" / name).exists()


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with Staging(tmp_path / "out") as staging:
        staging.commit([], {"rows": {}})
    assert [path.name for path in (tmp_path / "out").iterdir()] == [MANIFEST]


def test_many_small_items_share_a_task(spark: Any) -> None:
    found = run_tasks(spark, lambda item: (item * item, os.getpid()), range(10), most=1)
    assert [square for square, _ in found] == [item * item for item in range(10)]
    assert len({process for _, process in found}) == 1
