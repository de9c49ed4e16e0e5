"""Builds the compiled core, and the swarm beside it, into a directory of its own, with any compiler flags."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-O1", "-g1")
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def copy_sources(root: Path, folder: Path) -> None:
    """The package as Python finds it, without anything built, and the tests that the targets need."""
    built = shutil.ignore_patterns("*.so", "*.c", "*.html", "__pycache__", "build")
    shutil.copytree(root / "kwsniff", folder / "kwsniff", ignore=built)
    shutil.copytree(root / "dissectors", folder / "kwsniff" / "dissectors", ignore=built)
    for room in ("hostile", "traffic", "core", "pipeline"):
        shutil.copytree(root / "tests" / room, folder / "tests" / room, ignore=built)
    shutil.copy(root / "tests" / "__init__.py", folder / "tests")


def build(folder: Path, flags: Sequence[str] = ("-O2",), root: Path = ROOT) -> list[str]:
    """Fills `folder` with an importable kwsniff and tests.hostile.swarm; returns the modules' names.

    Raises CalledProcessError with the compiler's words in `stderr`.
    """
    copy_sources(root, folder)
    sources = [
        *sorted((folder / "kwsniff" / "core").rglob("*.pyx")),
        folder / "tests" / "hostile" / "swarm.pyx",
    ]
    names = [str(source.relative_to(folder)) for source in sources]
    stale = [name for name in names if not _copy_translated(root, folder, name)]
    _run([sys.executable, "-m", "cython", "-3", *stale], folder)
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    include = sysconfig.get_path("include")
    command = [compiler, "-shared", "-fPIC", "-w", *flags, f"-I{include}"]
    jobs = [
        [*command, str(source.with_suffix(".c")), "-o", str(source.with_suffix(_SUFFIX))]
        for source in sources
    ]
    for job in jobs:
        _run(job, folder)
    return [name.removesuffix(".pyx").replace(os.sep, ".") for name in names]


def _copy_translated(root: Path, folder: Path, name: str) -> bool:
    """The module as C, where setup.py has translated all of the core since it was last edited."""
    edited = max(path.stat().st_mtime for path in (root / "kwsniff" / "core").rglob("*.p[yx][xd]"))
    made = (root / "build" / "c" / name).with_suffix(".c")
    if not made.exists() or made.stat().st_mtime <= edited:
        return False
    shutil.copy(made, (folder / name).with_suffix(".c"))
    return True


def _run(command: Sequence[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
