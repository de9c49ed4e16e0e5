"""The checkout as tests see it."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "kwsniff" / "core"
DOCS = ROOT / "docs"

_GENERATED = re.compile(
    r"(^|/)(\.[^/]*|__pycache__|build|dist|out|[^/]*\.egg-info)/|\.(pyc|so|c|cpp)$|(^|/)\.git$"
)


def tracked_files() -> list[Path]:
    """Every file that belongs to the project; where git cannot tell, every one that nothing generated."""
    names = _names_by_git() if (ROOT / ".git").exists() else []
    if names:
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    paths = [path for path in ROOT.rglob("*") if path.is_file()]
    return [path for path in paths if not _GENERATED.search(relative(path))]


def _names_by_git() -> list[str]:
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or a clone that belongs to somebody else
        return []
    return [name for name in done.stdout.split("\0") if name]


def relative(path: Path) -> str:
    """The path as git would write it."""
    return path.relative_to(ROOT).as_posix()


def c_enum(file: str, name: str) -> dict[str, int]:
    """Members of `cdef enum NAME` of a file in kwsniff/core, numbered as C numbers them."""
    text = (CORE / file).read_text("utf-8")
    body = re.search(rf"^cdef enum {name}:\n((?:[ \t]+[^\n]*\n|\n)+)", text + "\n", re.MULTILINE)
    assert body, f"{file} has no enum {name}"
    members: dict[str, int] = {}
    code = re.sub(r"#[^\n]*", "", body[1])
    for member in re.findall(r"(\w+)(?:\s*=\s*(-?\w+))?", code):
        number = int(member[1], 0) if member[1] else max(members.values(), default=-1) + 1
        members[member[0]] = number
    return members


def names_of(members: dict[str, int], prefix: str, *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """User-facing names of an enum's members in the order of their numbers; counts (NUM_...) left out."""
    ordered = sorted(
        (number, name)
        for name, number in members.items()
        if not name.startswith("NUM_") and name not in without
    )
    assert [number for number, _ in ordered] == list(range(len(ordered)))
    return tuple(name.removeprefix(prefix).lower() for _, name in ordered)
