"""Runs one command and prints what the kernel counted: `launch.py OUTPUT ERRORS COMMAND...`

A process of its own, kept small on purpose: the peak memory of a child begins with that of the process that
started it (its memory is counted until exec), so a large parent would hide a small child.
"""

import json
import os
import sys
import time


def run(output: str, errors: str, command: list[str]) -> dict[str, float | int]:
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
    ]
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    return {
        "seconds": time.perf_counter() - started,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "exit_code": os.waitstatus_to_exitcode(status),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3:])))
