"""The version of kwsniff, and the commit that it was built from. setup.py runs this file too."""

import subprocess
from importlib import metadata
from pathlib import Path

BUILT_FROM = "commit.txt"
"""In the package: the commit, where setup.py built it from a git checkout."""

_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def installed_version() -> str:
    """The version that the package's metadata has; empty where kwsniff is not installed."""
    try:
        return metadata.version("kwsniff")
    except metadata.PackageNotFoundError:
        return ""


def checked_out_commit(root: Path) -> str:
    """The commit of a checkout, with `-dirty` where its files differ from it; empty where there is none."""
    if not (root / ".git").exists():  # a repository around an unpacked archive is another project's
        return ""
    command = ["git", "-C", str(root), *_DESCRIBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit(package: Path) -> str:
    """The commit that a package was built from, or of the checkout that it is in (an editable install)."""
    try:
        return (package / BUILT_FROM).read_text("utf-8").strip()
    except OSError:
        return checked_out_commit(package.parent)


def version_line() -> str:
    """What `kwsniff --version` prints."""
    built_from = commit(Path(__file__).parents[1])
    named = installed_version() or "from a source tree that is not installed"
    return f"kwsniff {named}" + (f" (commit {built_from})" if built_from else "")
