"""A process that dies, or is refused, at the n-th change that it makes to the file system."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kwsniff.errors import OutputError
from kwsniff.tables import folder as folder_module
from kwsniff.tables.folder import Folder, recover, translate_errors

Writer = Callable[[Path, str], None]
_CHANGES = ("rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir", "open", "fsync")
_KILLED = 9
NAMES = ("api_calls.parquet", "captures.parquet", "groups.parquet", "latencies.parquet")
GONE = "transactions.parquet"


def tables_write(directory: Path, text: str) -> None:
    """A run as of `analyze`: four files come, one goes."""
    with Folder(directory) as folder:
        for name in NAMES:
            (folder.new / name).write_text(text)
        folder.commit(NAMES, [GONE])


def pipeline_writes(directory: Path, text: str) -> None:
    """A run as of `pipeline`: folders, all that is there."""
    with Folder(directory, whole=True) as folder:
        with translate_errors(directory):
            for name in ("api_calls", "captures"):
                (folder.new / name).mkdir()
                (folder.new / name / f"{text}.parquet").write_text(text)
        (folder.new / "_kwsniff.json").write_text(text)
        folder.commit(["api_calls", "captures", "_kwsniff.json"], ["groups"])


def pipeline_cannot_exchange(directory: Path, text: str) -> None:
    """The same on a kernel or a file system that does not know how to exchange two folders."""
    folder_module.exchange = lambda one, other: False
    pipeline_writes(directory, text)


def pipeline_cannot_exchange_any_more(directory: Path, text: str) -> None:
    """It could when the run began, and cannot when it is complete."""
    able, asked = folder_module.exchange, iter([True])
    folder_module.exchange = lambda one, other: next(asked, False) and able(one, other)
    pipeline_writes(directory, text)


def live_closes(directory: Path, text: str) -> None:
    """Files of a live run: they join those that are there."""
    with Folder(directory) as folder:
        names = [f"{table}/{text}.parquet" for table in ("api_calls", "captures")]
        with translate_errors(directory):
            for name in names:
                (folder.new / name).parent.mkdir()
                (folder.new / name).write_text(text)
        folder.commit(names)


def settles(directory: Path, text: str) -> None:
    """Somebody is about to read."""
    recover(directory)


class Breaker:
    """A process that forks others, one for each writer that is to be broken.

    It has loaded nothing but what writers need: to fork a process of pytest takes ten times as long.
    """

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.tables.faults"]
        self._process = subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def broken(self, how: str, number: int, doing: Writer, directory: Path, text: str) -> str:
        """`killed`, the error that was said, or `done` when it did not come to a change of that number.

        `how`: `kill` ends the process right after the change, without a word; `refuse` lets it fail with EIO.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([how, number, doing.__name__, str(directory), text]) + "\n")
        self._process.stdin.flush()
        said: str = json.loads(self._process.stdout.readline())
        return said

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate(timeout=60)


def _serve() -> None:
    os.fsync = lambda fd: None  # the process dies, not the machine: nothing needs to reach the disk
    for line in sys.stdin:
        how, number, name, directory, text = json.loads(line)
        sys.stdout.write(json.dumps(_broken(how, number, globals()[name], Path(directory), text)) + "\n")
        sys.stdout.flush()


def _broken(how: str, number: int, doing: Writer, directory: Path, text: str) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _break_at(number, how)
        try:
            doing(directory, text)
            os.write(writing, b"done")
        except OutputError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == _KILLED:
            return "killed"
        return said.read()


def _break_at(number: int, how: str) -> None:
    """From here on changes are counted."""
    counted = 0

    def breaking(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **named: Any) -> Any:
            nonlocal counted
            counted += 1
            if counted == number and how == "refuse":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            try:
                return change(*given, **named)
            finally:
                if counted == number and how == "kill":
                    os._exit(_KILLED)

        return changed

    for name in _CHANGES:
        setattr(os, name, breaking(getattr(os, name)))
    folder_module.exchange = breaking(folder_module.exchange)


if __name__ == "__main__":
    _serve()
