"""`kwsniff --version` names the commit that kwsniff was built from."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kwsniff.cli.version import BUILT_FROM, checked_out_commit, commit


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with a package and one commit."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    package = tmp_path / "clone" / "kwsniff"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"], ["tag", "v9.9.9"]):
        git(package.parent, *words)
    return package.parent


def test_a_checkout_has_the_commit_that_git_has(checkout: Path) -> None:
    full = git(checkout, "rev-parse", "HEAD")
    assert checked_out_commit(checkout) == full[:12]
    assert commit(checkout / "kwsniff") == full[:12]


def test_changed_files_are_said(checkout: Path) -> None:
    (checkout / "kwsniff" / "__init__.py").write_text("1\n")
    assert checked_out_commit(checkout) == git(checkout, "rev-parse", "HEAD")[:12] + "-dirty"


def test_the_commit_of_the_build_comes_first(checkout: Path) -> None:
    (checkout / "kwsniff" / BUILT_FROM).write_text("0123456789ab\n")
    assert commit(checkout / "kwsniff") == "0123456789ab"


def test_a_repository_around_it_does_not_count(checkout: Path) -> None:
    inner = checkout / "unpacked"
    (inner / "kwsniff").mkdir(parents=True)
    assert commit(inner / "kwsniff") == ""


def test_without_git_there_is_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert checked_out_commit(checkout) == ""
