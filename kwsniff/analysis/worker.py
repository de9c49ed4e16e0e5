"""A thread beside the one that reads: it does one piece of work at a time.

`concurrent.futures` loads `logging`, which takes a fiftieth of the time of a small capture.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

Work = Callable[[], object]


class Worker:
    """`submit` hands over one piece of work, and `settle` waits for it and raises what it raised."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._busy = False
        self._thread = Thread(target=_do, args=(self._work, self._done), name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[..., object], *arguments: Any) -> None:
        """Begins a piece of work; what was begun before must be settled."""
        if self._busy:
            raise AssertionError("one piece of work at a time")
        self._busy = True
        self._work.put(lambda: work(*arguments))

    def wait(self) -> None:
        """Waits for what was begun, if anything was."""
        if self._busy:
            self._busy = False
            if error := self._done.get():
                raise error

    def close(self) -> None:
        """Waits for what was begun, and ends the thread."""
        self._work.put(None)
        self._thread.join()


def _do(work: "SimpleQueue[Work | None]", done: "SimpleQueue[BaseException | None]") -> None:
    """Refers to no worker: one that is forgotten can go."""
    while (piece := work.get()) is not None:
        try:
            piece()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)
        del piece
