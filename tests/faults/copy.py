"""A copy of the checkout with every fault in it, built once: what did not change is not built again."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.faults.listing import ROOT, Fault, faults_of_files
from tests.faults.plant import plant

TREE = ROOT / "build" / "faults" / "tree"
_COPIED = ("kwsniff", "dissectors", "tests", "pyproject.toml", "setup.py", "README.md", "LICENSE")
_LINKED = ("captures", "docs")
_MADE = (".so", ".pyc", ".c")


def build_copy(faults: Sequence[Fault]) -> Path:
    """The folder of the copy. CalledProcessError: it does not compile."""
    TREE.mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        _link(TREE / name, ROOT / name)
    _link(TREE.parent / "shared", ROOT.parent / "shared")
    files = faults_of_files(faults)
    wanted = set()
    for path in _sources():
        name = path.relative_to(ROOT).as_posix()
        wanted.add(name)
        data = path.read_bytes()
        if name in files:
            is_compiled = path.suffix in (".pyx", ".pxd")
            data = plant(data.decode(), files[name], compiled=is_compiled).encode()
        if name == "setup.py":
            data = data.replace(b"-O3", b"-O1")
        _write(TREE / name, data)
    _remove_others(wanted)
    # Python finds data files beside the layouts' package by this name.
    _link(TREE / "kwsniff" / "dissectors", TREE / "dissectors")
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=TREE, check=True)
    return TREE


def _sources() -> list[Path]:
    found = []
    for name in _COPIED:
        root = ROOT / name
        found += [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
    return [path for path in found if path.suffix not in _MADE and "__pycache__" not in path.parts]


def _write(path: Path, data: bytes) -> None:
    """What is there already keeps its time, by which setup.py tells what changed."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _link(path: Path, target: Path) -> None:
    if target.exists() and not path.is_symlink():
        path.symlink_to(target, target_is_directory=target.is_dir())


def _remove_others(wanted: set[str]) -> None:
    """Files that the checkout has no more, and modules built from them."""
    for folder, folders, names in os.walk(TREE):
        folders[:] = [name for name in folders if name not in ("build", "__pycache__")]
        for path in (Path(folder) / name for name in names):
            name = path.relative_to(TREE).as_posix()
            source = name.partition(".")[0] + ".pyx" if path.suffix == ".so" else name
            if source not in wanted and not path.is_symlink():
                path.unlink()


def forget_copy() -> None:
    """Removes it."""
    shutil.rmtree(TREE.parent, ignore_errors=True)
