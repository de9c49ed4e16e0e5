"""Builds the compiled core: every .pyx below kwsniff/core is a module. All else stands in pyproject.toml.

python setup.py build_ext --inplace     # again: what changed, and what cimports it
"""

import hashlib
import os
import runpy
import shutil
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
PACKAGES = [
    *find_packages(str(ROOT), include=["kwsniff", "kwsniff.*"]),
    "kwsniff.dissectors",  # these stand elsewhere: package-dir
    "kwsniff.dissectors.kafka",
    "pyspark_kafka_capture",
]
SOURCES = [path.relative_to(ROOT) for path in sorted(ROOT.glob("kwsniff/core/**/*.pyx"))]
# What decides, beside its text, which machine a compiled module fits: a wheel made for an old libc must hold
# none that was made for this one.
SETTINGS = [os.environ.get(name) for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS")] + [
    os.environ.get("MACOSX_DEPLOYMENT_TARGET"),
    sys.version,
    sysconfig.get_platform(),
    os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", {}) else None,
]
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled() -> list[Extension]:
    """The modules as C; cythonize follows cimports and leaves alone what is up to date."""
    modules = [
        Extension(".".join(path.with_suffix("").parts), [path.as_posix()], extra_compile_args=["-O3"])
        for path in SOURCES
    ]
    return cythonize(modules, build_dir="build/c", nthreads=WORKERS, language_level=3)


class BuildModules(build_ext):
    """Compiles what was not compiled before. By texts, not times: pip builds each time in folders of its own,
    with a Cython that is new there.
    """

    def run(self) -> None:
        super().run()
        if not self.inplace:
            # Python that runs in a clone takes the package's folder there, not the one that was installed.
            self.copy_extensions_to_source()

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        given = hashlib.sha256(repr((SETTINGS, ext.extra_compile_args)).encode())
        for source in [*ext.sources, *ext.depends]:
            given.update(Path(source).read_bytes())
        kept = Path("build/modules", self.get_ext_filename(ext.name))
        made_of = kept.with_suffix(".sha256")
        if made_of.exists() and made_of.read_text() == given.hexdigest():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(kept, target)
            return
        target.unlink(missing_ok=True)  # setuptools leaves alone what is younger than its text
        super().build_extension(ext)
        kept.parent.mkdir(parents=True, exist_ok=True)
        made_of.unlink(missing_ok=True)
        shutil.copy(target, kept)
        made_of.write_text(given.hexdigest())


def write_commit(package: Path) -> None:
    """Writes the commit into a package that is built from a git checkout: `kwsniff --version` names it."""
    version = runpy.run_path(str(ROOT / "kwsniff" / "cli" / "version.py"))
    if commit := version["checked_out_commit"](ROOT):
        (package / version["BUILT_FROM"]).write_text(f"{commit}\n", "utf-8")


class BuildPython(build_py):
    """The package's files, and the commit; an editable install runs from the checkout and needs no copy."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib, "kwsniff"))


class SourceArchive(sdist):
    """The sdist, with the commit: a wheel that is built from it names the commit too."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir, "kwsniff"))


if __name__ == "__main__":  # workers of cythonize import this file where processes are not forked
    setup(
        packages=PACKAGES,
        ext_modules=compiled(),
        cmdclass={"build_ext": BuildModules, "build_py": BuildPython, "sdist": SourceArchive},
        options={"build_ext": {"parallel": WORKERS}},
    )
