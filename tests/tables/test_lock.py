"""One writer at a time in a folder, and what proves that a writer is dead."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kwsniff.errors import OutputError
from kwsniff.tables.folder import Folder
from kwsniff.tables.lock import NAME, STAND_IN, take_lock

ROOT = Path(__file__).parents[2]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_only_one_has_it_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    first = take_lock(tmp_path)
    assert first is not None
    assert take_lock(tmp_path) is None
    first.release()
    assert names(tmp_path) == []
    second = take_lock(tmp_path)
    assert second is not None
    first.release()
    assert take_lock(tmp_path) is None, "giving back again takes nothing from others"
    second.release()


def test_it_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kwsniff.tables.lock import take_lock\n"
        "held = take_lock(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path) == [NAME]
    lock = take_lock(tmp_path)
    assert lock is not None
    lock.release()


def test_who_opened_the_file_of_a_writer_that_has_left_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its `open` and its `flock` another gives the lock back, which removes the file."""
    first = take_lock(tmp_path)
    real, times = fcntl.flock, 0

    def late(descriptor: int, how: int) -> None:
        nonlocal times
        times += 1
        if times == 1:
            assert first is not None
            first.release()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    second = take_lock(tmp_path)
    assert second is not None
    assert times == 2
    assert take_lock(tmp_path) is None
    second.release()


def test_a_folder_that_was_moved_away_takes_its_lock_with_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    first = take_lock(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "old")
    (tmp_path / "out").mkdir()
    second = take_lock(tmp_path / "out")
    assert first is not None
    assert second is not None
    first.release()
    assert names(tmp_path / "out") == [NAME], "that of the new folder is another's"
    second.release()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_locked(tmp_path: Path, kind: str) -> None:
    if kind == "link":
        (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(tmp_path / NAME)
    else:
        (tmp_path / NAME).mkdir()
    with pytest.raises(OSError, match=NAME):
        take_lock(tmp_path)
    assert names(tmp_path) == [NAME]


@pytest.mark.parametrize("why", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_locks_a_file_stands_in_and_only_its_writer_or_the_user_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    def none(descriptor: int, how: int) -> None:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(fcntl, "flock", none)
    with Folder(tmp_path) as folder:
        with (
            pytest.raises(OutputError, match=rf"another .* is writing there, according to {STAND_IN}"),
            Folder(tmp_path),
        ):
            pass
        (folder.new / "api_calls.parquet").write_text("one")
        folder.commit(["api_calls.parquet"])
    assert (tmp_path / "api_calls.parquet").read_text() == "one"

    died = Folder(tmp_path)
    died.__enter__()
    (died.new / "api_calls.parquet").write_text("half")
    with pytest.raises(OutputError, match="if none is running, remove that file"), Folder(tmp_path):
        pass
    (tmp_path / STAND_IN).unlink()  # as the user is asked to
    with Folder(tmp_path):
        assert not died.staging.exists()
    assert (tmp_path / "api_calls.parquet").read_text() == "one"
