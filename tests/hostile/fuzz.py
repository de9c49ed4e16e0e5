"""Runs targets round after round and says how many executions each had.

    python -m tests.hostile.fuzz [--seconds N] [--seed N] [--target NAME ...]

The line written before each round is enough to run it again: --target NAME --seed N --rounds 1.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from tests.core.guard import flush_against_guard_page
from tests.hostile.targets import TARGETS


def has_swarm() -> bool:
    try:
        import tests.hostile.swarm  # noqa: F401
    except ImportError:
        return False
    return True


class Guarded:
    """Holds the inputs of one round against guard pages, a few at a time."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._areas: list[AbstractContextManager[memoryview]] = []

    def __call__(self, data: bytes) -> Any:
        area = flush_against_guard_page(data)
        view = area.__enter__()
        self._areas.append(area)
        if len(self._areas) > 16:
            self._areas.pop(0).__exit__(None, None, None)
        return view


def run_round(name: str, seed: int, executions: int) -> None:
    """One round, with the strictest way to hold inputs that is at hand."""
    target, _ = TARGETS[name]
    if has_swarm():
        from tests.hostile.swarm import Exact

        target(seed, executions, Exact)
        return
    with ExitStack() as stack:
        target(seed, executions, Guarded(stack))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.fuzz", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--rounds", type=int, default=1 << 30, help="for each target, at most")
    parser.add_argument("--executions", type=int, help="of one round; the target's own number if not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    options = parser.parse_args(arguments)
    for name in options.target or TARGETS:
        executions = options.executions or TARGETS[name][1]
        if TARGETS[name][1] >= 100_000 and not has_swarm():
            print(f"{name}: 0 executions (needs the swarm: python -m tests.hostile.sanitize)", flush=True)  # noqa: T201
            continue
        begin, done = time.monotonic(), 0
        while done < options.rounds and (done == 0 or time.monotonic() - begin < options.seconds):
            print(f"round {name} {options.seed + done}", file=sys.stderr, flush=True)  # noqa: T201
            run_round(name, options.seed + done, executions)
            done += 1
        print(f"{name}: {done * executions} executions in {time.monotonic() - begin:.0f} s", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
