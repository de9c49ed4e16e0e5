"""Who may capture, and what to try when it is refused."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def not_permitted(interface: str, program: str | None) -> str:
    """What to try when capturing is refused."""
    tries = ["run it with sudo"]
    if program:
        tries.append(f"sudo setcap cap_net_raw,cap_net_admin+eip {program}")
    group = _dumpcap_group()
    if group:
        tries.append(f"join the group {group} (sudo usermod -aG {group} $USER, then log in again)")
    return f"capturing on {interface} is not permitted; {', or '.join(tries)}"


def not_shed(program: str) -> str:
    """What to try where the tool, started as root, cannot give root's rights up."""
    return (
        f"{Path(program).name}, started as root, becomes another user, for which rights are missing here; "
        f"run kwsniff as another user, after setcap cap_net_raw+ep {program}"
    )


def unusable(tools: Sequence[str]) -> str:
    """Says so when a tool is there, but not for this user, as Debian installs dumpcap."""
    for tool in tools:
        for folder in os.get_exec_path():
            path = Path(folder) / tool
            if path.is_file() and not os.access(path, os.X_OK):
                group = _group_of(path)
                return f" for this user ({path} is for the group {group}: sudo usermod -aG {group} $USER)"
    return ""


def _dumpcap_group() -> str | None:
    """The group that may run dumpcap, where there is one of its own."""
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
