"""What the C library does with memory that was freed: a count of pages that had to be asked for again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

_BATCHES = """
import resource, sys
import numpy as np
from kwsniff.core.columns.allocator import keep_freed_memory

def batches(number):
    for _ in range(number):
        columns = [np.ones(300_000, np.uint8) for _ in range(20)]
        del columns

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    keep_freed_memory()
batches(3)
before = pages()
batches(20)
print(pages() - before)
"""
"""Twenty times six megabytes of columns, one batch after the other."""


def _pages(how: str) -> int:
    # Nobody else may have told the C library what to keep.
    told = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    command = [sys.executable, "-c", _BATCHES, how]
    return int(subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_columns_of_a_batch_take_the_memory_of_those_before() -> None:
    given_back = _pages("as ever")
    if given_back < 20:
        pytest.skip("this system does not count pages, or keeps them by itself")
    assert _pages("keep") < given_back / 10
