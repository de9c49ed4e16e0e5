"""Builds the compiled core: every .pyx below kwsniff/core is a module. All else stands in pyproject.toml.

python setup.py build_ext --inplace     # again: what changed, and what cimports it
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
PACKAGES = [
    *find_packages(str(ROOT), include=["kwsniff", "kwsniff.*"]),
    "kwsniff.dissectors",  # these stand elsewhere: package-dir
    "kwsniff.dissectors.kafka",
    "pyspark_kafka_capture",
]
SOURCES = [path.relative_to(ROOT) for path in sorted(ROOT.glob("kwsniff/core/**/*.pyx"))]
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled() -> list[Extension]:
    """The modules as C; cythonize follows cimports and leaves alone what is up to date."""
    modules = [
        Extension(".".join(path.with_suffix("").parts), [path.as_posix()], extra_compile_args=["-O3"])
        for path in SOURCES
    ]
    return cythonize(modules, build_dir="build/c", nthreads=WORKERS, language_level=3)


if __name__ == "__main__":  # workers of cythonize import this file where processes are not forked
    setup(packages=PACKAGES, ext_modules=compiled(), options={"build_ext": {"parallel": WORKERS}})
