"""What a command shows on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping


def run_on_terminal(
    *arguments: object, environment: Mapping[str, str], progress: bool = False
) -> tuple[int, str]:
    """Exit status and text. `environment` is added to this process's, without NO_COLOR; `progress`: standard
    error is shown, too."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "kwsniff.cli.main", *map(str, arguments)]
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    error = follower if progress else subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=error, env=kept | {**environment}
    ) as child:
        os.close(follower)
        text = b""
        try:
            while piece := os.read(leader, 65536):
                text += piece
        except OSError:  # how Linux says that no process has the other side open
            pass
    os.close(leader)
    return child.returncode, text.decode()
