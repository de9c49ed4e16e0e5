"""Capture permissions, and advice if they are missing."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def not_permitted(interface: str, program: str | None) -> str:
    """Advice if the system refuses to capture."""
    tries = ["run it with sudo"]
    if program:
        tries.append(f"sudo setcap cap_net_raw,cap_net_admin+eip {program}")
    group = _dumpcap_group()
    if group:
        tries.append(f"join the group {group} (sudo usermod -aG {group} $USER, then log in again)")
    return f"capturing on {interface} is not permitted; {', or '.join(tries)}"


def not_shed(program: str) -> str:
    """Advice if the tool, started as root, cannot drop root's privileges."""
    return (
        f"{Path(program).name}, started as root, changes to another user without the permission to capture; "
        f"run kwsniff as another user, after setcap cap_net_raw+ep {program}"
    )


def unusable(tools: Sequence[str]) -> str:
    """A hint if a tool is installed but not executable for this user, as dumpcap on Debian."""
    for tool in tools:
        for folder in os.get_exec_path():
            path = Path(folder) / tool
            if path.is_file() and not os.access(path, os.X_OK):
                group = _group_of(path)
                return f" for this user ({path} is for the group {group}: sudo usermod -aG {group} $USER)"
    return ""


def _dumpcap_group() -> str | None:
    """The group that may run dumpcap, if there is a separate one."""
    program = shutil.which("dumpcap")
    group = _group_of(Path(program)) if program else None
    if group in (None, "root", "wheel"):
        import grp

        names = [entry.gr_name for entry in grp.getgrall()]
        return "wireshark" if "wireshark" in names else None
    return group


def _group_of(path: Path) -> str | None:
    try:
        return path.group()
    except (KeyError, OSError):
        return None
