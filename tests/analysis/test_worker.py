"""The thread beside the reading one: work is done in order, and its failures come out where it is settled."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kwsniff.analysis.worker import Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker("test")
    yield started
    started.close()


def test_work_is_done_in_another_thread_and_in_order(worker: Worker) -> None:
    done: list[tuple[int, int]] = []
    for number in range(5):
        worker.submit(lambda each: done.append((each, threading.get_ident())), number)
        worker.wait()
    assert [number for number, _ in done] == [0, 1, 2, 3, 4]
    threads = {thread for _, thread in done}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_failure_comes_out_once_and_work_goes_on(worker: Worker) -> None:
    def fail() -> None:
        raise OSError("disk full")

    worker.submit(fail)
    with pytest.raises(OSError, match="disk full"):
        worker.wait()
    worker.wait()
    done: list[int] = []
    worker.submit(done.append, 1)
    worker.wait()
    assert done == [1]


def test_two_pieces_at_a_time_are_refused(worker: Worker) -> None:
    gate = threading.Event()
    worker.submit(gate.wait)
    with pytest.raises(AssertionError, match="one piece"):
        worker.submit(gate.wait)
    gate.set()
    worker.wait()


def test_closing_waits_for_what_was_begun() -> None:
    worker = Worker("test")
    done: list[int] = []
    worker.submit(done.append, 1)
    worker.close()
    assert done == [1]
