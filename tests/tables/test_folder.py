"""Folders of output: wholly the old or wholly the new run, whenever a writer dies or is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwsniff.errors import OutputError
from kwsniff.tables import folder as folder_module
from kwsniff.tables import journal
from kwsniff.tables.folder import Folder, recover
from kwsniff.tables.lock import NAME
from tests.tables import faults
from tests.tables.faults import Breaker, Writer, settles

WRITERS = (
    faults.tables_write,
    faults.pipeline_writes,
    faults.pipeline_cannot_exchange,
    faults.pipeline_cannot_exchange_any_more,
    faults.live_closes,
)
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a process that dies here, not the machine: nothing needs to reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def visible(folder: Path) -> dict[str, str]:
    """Whatever readers find: every file that is not hidden, with what it says."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def hidden(folder: Path) -> list[str]:
    """Whatever is left over, in the folder or beside it."""
    return [path.name for root in (folder, folder.parent) for path in root.glob(".*kwsniff*")]


@pytest.fixture(scope="module")
def breaker() -> Iterator[Breaker]:
    made = Breaker()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def exchange_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers that cannot exchange folders run here, too: what they put in its place goes again."""
    monkeypatch.setattr(folder_module, "exchange", folder_module.exchange)


def prepared(tmp_path: Path, doing: Writer) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A folder with one run in it, what it shows, and what it shows after another."""
    out, again = tmp_path / uuid.uuid4().hex / "out", tmp_path / uuid.uuid4().hex / "out"
    for folder in (out, again):
        folder.parent.mkdir()
        if doing is faults.tables_write:
            folder.mkdir()
            (folder / faults.GONE).write_text("old")
            (folder / "notes.txt").write_text("mine")
        doing(folder, "old")
        if doing is faults.tables_write:
            (folder / faults.GONE).write_text("old")
    doing(again, "new")
    old, new = visible(out), visible(again)
    assert old != new
    assert "old" in old.values()
    assert "new" in new.values()
    return out, old, new


@pytest.mark.sample(1)
@pytest.mark.parametrize("doing", WRITERS, ids=lambda doing: doing.__name__)
def test_a_run_killed_after_any_change_leaves_the_old_or_the_new(
    tmp_path: Path, doing: Writer, breaker: Breaker
) -> None:
    """And so does one that is killed again, at whatever change, while that is put right."""
    seen = []
    for number in range(1, 1000):
        out, old, new = prepared(tmp_path, doing)
        if breaker.broken("kill", number, doing, out, "new") == "done":
            break
        if doing is faults.pipeline_writes:
            assert visible(out) in (old, new), f"a plain reader, after change {number}"
        for again in range(1, 1000):
            if breaker.broken("kill", again, settles, out, "") != "killed":
                break
        recover(out)
        assert visible(out) in (old, new), f"after change {number}"
        seen.append(visible(out) == new)
        doing(out, "new")
        assert visible(out) == new
        assert hidden(out) == []
    assert seen == sorted(seen), "old up to some change, and new from there on"
    assert set(seen) == {False, True}


@pytest.mark.sample(1)
@pytest.mark.parametrize("doing", WRITERS, ids=lambda doing: doing.__name__)
def test_a_run_that_is_refused_any_change_leaves_the_old_or_the_new(
    tmp_path: Path, doing: Writer, breaker: Breaker
) -> None:
    said = []
    for number in range(1, 1000):
        out, old, new = prepared(tmp_path, doing)
        said.append(breaker.broken("refuse", number, doing, out, "new"))
        if said[-1] == "done":
            assert visible(out) == new, f"change {number} was refused, and nothing said"
        else:
            assert "Input/output error" in said[-1]
            assert "\n" not in said[-1]
            assert "no file was changed there" in said[-1]
            assert visible(out) == old, f"change {number}: {said[-1]}"
        doing(out, "new")
        assert visible(out) == new
        if number > 80:
            break
    assert len([each for each in said if each != "done"]) > 5


def test_a_run_that_can_neither_go_on_nor_back_says_so_and_the_next_puts_it_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, old, _ = prepared(tmp_path, faults.tables_write)
    real, moved = Path.rename, 0

    def refused(path: Path, target: Path) -> Path:
        nonlocal moved
        if Path(target).suffix == ".parquet":
            moved += 1
            if moved > 2:
                raise OSError(5, os.strerror(5))
        return real(path, target)

    with monkeypatch.context() as patched, pytest.raises(OutputError, match="the next run that writes there"):
        patched.setattr(Path, "rename", refused)
        faults.tables_write(out, "new")
    assert visible(out) != old
    recover(out)
    assert visible(out) == old
    assert hidden(out) == []


_WRITES = """
import sys
from pathlib import Path
from kwsniff.tables.folder import Folder
with Folder(Path(sys.argv[1])) as folder:
    (folder.new / "api_calls.parquet").write_text("first")
    print("writing", flush=True)
    sys.stdin.readline()
    folder.commit(["api_calls.parquet"])
"""


@pytest.mark.parametrize("apart", [False, True], ids=["beside", "in another pid namespace"])
def test_a_second_writer_is_told_and_the_first_goes_on(tmp_path: Path, apart: bool) -> None:
    """Also where process ids mean nothing to each other: both have the same one, as in two containers."""
    command = [sys.executable, "-c", _WRITES, str(tmp_path)]
    if apart:
        command = ["unshare", "--pid", "--fork", *command]
        try:
            subprocess.run(["unshare", "--pid", "--fork", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no pid namespace can be made here: {error}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "writing\n"
        second = subprocess.run(
            command, text=True, cwd=ROOT, input="\n", capture_output=True, check=False, timeout=PATIENCE_S
        )
        assert second.returncode == 1
        assert f"{tmp_path}: another kwsniff is writing there" in second.stderr
        with pytest.raises(OutputError, match="another kwsniff is writing there"), Folder(tmp_path):
            pass
        assert first.communicate("\n", timeout=PATIENCE_S) == ("", "")
        assert first.returncode == 0
    assert visible(tmp_path) == {"api_calls.parquet": "first"}
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("whole", [False, True])
def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Not even under the name that the writer is going to choose."""
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.mkdir()
    (victim / "letter").write_text("mine")
    known = uuid.UUID(int=7)
    monkeypatch.setattr(uuid, "uuid4", lambda: known)
    (out / f".kwsniff-{known.hex}").symlink_to(victim)
    (tmp_path / f".out.kwsniff-{known.hex}").symlink_to(victim)
    with pytest.raises(OutputError), Folder(out, whole=whole):
        pass
    assert visible(victim) == {"letter": "mine"}


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).symlink_to(victim)
    with pytest.raises(OutputError, match="cannot write"), Folder(tmp_path / "out"):
        pass
    assert not victim.exists()


@pytest.mark.parametrize("name", ["../victim", "/etc/passwd", ".hidden", "a/b/c", "a/../b", ""])
def test_a_planted_journal_moves_nothing_outside(tmp_path: Path, name: str) -> None:
    staging = tmp_path / f".kwsniff-{0:032x}"
    for room in (journal.NEW, journal.OLD):
        (staging / room).mkdir(parents=True)
    plan = journal.Journal(("api_calls.parquet",), (name,) if name else (), ())
    (staging / "new" / "api_calls.parquet").write_text("x")
    if not name:
        (staging / "journal.json").write_text('{"put": 1}')
    else:
        journal.begin(journal.Journal(plan.put), staging, tmp_path)
        text = (staging / "journal.json").read_text().replace('"remove": []', f'"remove": ["{name}"]')
        (staging / "journal.json").write_text(text)
    with pytest.raises(OutputError, match="kwsniff cannot complete"), Folder(tmp_path):
        pass
    assert visible(tmp_path) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another user needs root")
def test_the_journal_of_another_user_is_not_followed(tmp_path: Path) -> None:
    staging = tmp_path / f".kwsniff-{0:032x}"
    staging.mkdir()
    os.chown(staging, 12345, 12345)
    with pytest.raises(OutputError, match="belongs to another user"), Folder(tmp_path):
        pass


def test_a_folder_behind_a_link_stays_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    faults.pipeline_writes(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert visible(tmp_path / "real")["_kwsniff.json"] == "new"


def test_what_others_put_beside_the_tables_stays(tmp_path: Path) -> None:
    faults.pipeline_writes(tmp_path / "out", "old")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    faults.pipeline_writes(tmp_path / "out", "new")
    assert visible(tmp_path / "out") == {
        "_kwsniff.json": "new",
        "api_calls/new.parquet": "new",
        "captures/new.parquet": "new",
        "notes.txt": "mine",
    }


def test_the_working_directory_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faults.pipeline_writes(Path(), "one")
    faults.pipeline_writes(tmp_path, "two")
    assert visible(Path()) == visible(tmp_path) != {}


def test_settling_lets_a_living_writer_be(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        (folder.new / "api_calls.parquet").write_text("new")
        recover(tmp_path)
        folder.commit(["api_calls.parquet"])
    recover(tmp_path)
    assert visible(tmp_path) == {"api_calls.parquet": "new"}
