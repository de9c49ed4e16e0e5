"""The tests of a fault's rooms, in the copy, with the fault turned on."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from tempfile import TemporaryDirectory

from tests.faults.copy import TREE
from tests.faults.listing import Fault
from tests.faults.plant import SWITCH

SECONDS = 600
"""A fault may make a loop endless; what takes longer counts as noticed."""

_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """`by` is the first test that failed, or what else gave the fault away; empty when nothing did."""

    number: int
    by: str

    @property
    def is_noticed(self) -> bool:
        """Whether anything gave the fault away."""
        return bool(self.by)

    def line(self) -> str:
        """For the screen."""
        return f"{self.number:4}  {'noticed by ' + self.by if self.by else 'UNNOTICED'}"


def try_fault(fault: Fault) -> Outcome:
    """Whether the tests notice. RuntimeError: nobody can say, as they fail without the fault, too."""
    try:
        code, text = _pytest(fault.rooms, fault.number)
    except subprocess.TimeoutExpired:
        return Outcome(fault.number, f"no end within {SECONDS} s")
    if code == _PASSED:
        return Outcome(fault.number, "")
    if code < 0:
        return Outcome(fault.number, f"signal {-code}")
    found = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", text, re.MULTILINE)
    if code not in (_FAILED, _INTERRUPTED) or not found:
        raise RuntimeError(f"fault {fault.number}: pytest ended with {code}\n{text}")
    if not _passes_without(found[1]):
        raise RuntimeError(f"fault {fault.number}: {found[1]} fails with no fault turned on, too")
    return Outcome(fault.number, found[1])


@lru_cache(None)
def _passes_without(test: str) -> bool:
    return _pytest([test], 0)[0] == _PASSED


def _pytest(rooms: Sequence[str], number: int) -> tuple[int, str]:
    plain = ("--whole", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=no", "-q", "-x")
    told = {SWITCH: str(number), "PYTHONPATH": str(TREE), "PYTHONDONTWRITEBYTECODE": "1"}
    # Runs side by side would remove each other's temporary folders.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plain, *rooms],
            cwd=TREE,
            env={**os.environ, **told, "PYTEST_DEBUG_TEMPROOT": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    return done.returncode, done.stdout
