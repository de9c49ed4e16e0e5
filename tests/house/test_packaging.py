"""What is made of the repository: the sdist, wheels, constraints, the release, the site."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .tree import DOCS, ROOT, relative, tracked_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONSTRAINTS = (ROOT / ".ci" / "constraints.txt").read_text("utf-8")


def test_the_sdist_has_every_file_of_the_repository() -> None:
    lines = (ROOT / "MANIFEST.in").read_text("utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    folders = {words[1] for words in words if words[0] in ("graft", "recursive-include")}
    files = {name for words in words if words[0] == "include" for name in words[1:]}
    missing = [
        name
        for name in map(relative, tracked_files())
        if name not in files | {"MANIFEST.in", "PKG-INFO", "setup.cfg"}
        and name.partition("/")[0] not in folders
    ]
    assert missing == []


def test_constraints_name_versions_and_nothing_else() -> None:
    for line in CONSTRAINTS.splitlines():
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", line)


def test_every_library_that_ci_installs_is_held() -> None:
    held = {line.partition("==")[0] for line in CONSTRAINTS.splitlines()}
    extras = PROJECT["project"]["optional-dependencies"]
    needs = [*PROJECT["project"]["dependencies"], *extras["test"], *extras["lint"]]
    names = {re.match(r"[\w.-]+", need)[0].lower() for need in needs}  # type: ignore[index]
    assert names - held == set()


def test_ci_holds_versions_and_tries_the_least_ones_when_asked() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "PIP_CONSTRAINT=$PWD/.ci/constraints.txt" in script
    assert re.search(r"KWSNIFF_LOWEST.* \|\| bash \.ci/lowest$", script, re.MULTILINE)


def test_wheels_are_made_for_every_python_that_is_named() -> None:
    named = [
        each.rpartition(" ")[2].replace(".", "")
        for each in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", each)
    ]
    assert named
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp{each}-*" for each in named]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with what the release reads."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / ".ci").mkdir()
    for name in (".ci/release", "pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        git(tmp_path, *words)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        identity |= {f"GIT_{role}_NAME": "somebody", f"GIT_{role}_EMAIL": "somebody@example.org"}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **identity},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def release(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", ".ci/release", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("version", "said"),
    [("", "give a version, such as 0.2.0"), ("0.2", "give a version"), ("0.0.9", "0.0.9 is before")],
)
def test_a_release_refuses_what_is_no_next_version(clone: Path, version: str, said: str) -> None:
    done = release(clone, version)
    assert done.returncode != 0
    assert said in done.stderr
    assert git(clone, "status", "--porcelain") == ""


def test_a_release_refuses_changes_that_are_not_committed(clone: Path) -> None:
    with (clone / "CHANGELOG.md").open("a") as log:
        log.write("\n")
    done = release(clone, "0.2.0")
    assert (done.returncode, "commit first" in done.stderr) == (2, True)


def test_a_release_refuses_a_changelog_without_news(clone: Path) -> None:
    log = "# Changelog\n\n## [0.2.0] - unreleased\n\n## [0.1.0] - 2026-01-01\n\n- all\n"
    (clone / "CHANGELOG.md").write_text(log)
    git(clone, "commit", "-qam", "nothing new")
    done = release(clone, "0.2.0")
    assert done.returncode != 0
    assert "nothing under '## [0.2.0] - unreleased'" in done.stderr


def signed(folder: Path, config: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A release up to its tag: what would be installed is not."""
    tools = folder.parent / f"{folder.name}-tools"
    tools.mkdir()
    python = tools / "python3"
    python.write_text(f'#!/bin/sh\n[ "$1" = - ] && exec {sys.executable} "$@"\nexit 9\n')
    python.chmod(0o755)
    for name, value in {"user.name": "somebody", "user.email": "somebody@example.org", **config}.items():
        git(folder, "config", name, value)
    return subprocess.run(
        ["bash", ".ci/release", "0.2.0"],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tag_is_signed_with_the_key_that_git_names(
    clone: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    key = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    done = signed(clone, {"gpg.format": "ssh", "user.signingkey": str(key)})
    assert done.returncode == 9, done.stderr
    assert "-----BEGIN SSH SIGNATURE-----" in git(clone, "cat-file", "tag", "v0.2.0")


def test_a_key_that_cannot_sign_makes_no_release(clone: Path) -> None:
    done = signed(clone, {"gpg.format": "ssh", "user.signingkey": "/nowhere/key"})
    assert done.returncode not in (0, 9)
    assert git(clone, "tag") == ""
    assert git(clone, "log", "--format=%s") == "begin\n"
    assert git(clone, "status", "--porcelain") == ""


def test_without_a_key_the_tag_is_bare(clone: Path) -> None:
    assert signed(clone, {}).returncode == 9
    assert "SIGNATURE" not in git(clone, "cat-file", "tag", "v0.2.0")


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING -" not in done.stderr
    pages = {path.stem for path in DOCS.rglob("*.md")}
    built = {path.parent.name for path in (tmp_path / "site").rglob("index.html")}
    assert pages <= built
    assert 'href="captures/"' in (tmp_path / "site" / "index.html").read_text("utf-8")


def test_every_page_of_the_docs_is_in_the_sites_list() -> None:
    listed = re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - set(listed) == set()
