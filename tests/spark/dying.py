"""Tasks that die the first time, after they have written their files."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from kwsniff.spark.decode import Decoded, decode_bucket


def die_once(marker: Path) -> None:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def decode_then_die(number: int, *, work: Any) -> Decoded:
    done = decode_bucket(number, work=work)
    die_once(Path(work.staging.root).parents[1] / f"died-{number}")
    return done


def double_then_die(number: int, *, folder: str) -> int:
    (Path(folder) / f"run-{number}-{os.getpid()}").touch()
    if number == 1:
        die_once(Path(folder) / "died")
    return 2 * number
