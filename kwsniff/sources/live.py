"""Live interfaces: packets of dumpcap, tcpdump or scapy as the bytes of one endless capture.

The tool applies the filter in the kernel and writes pcap or pcapng into a pipe, which reads like a file. Its
standard error becomes one line (see kwsniff/sources/capture_tools.py).
"""

import re
import shutil
import socket
from collections.abc import Sequence
from typing import Final

from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.rights import unusable

SNAPLEN: Final = 262_144
"""Bytes kept per packet; offloading makes packets of 64 KiB and more on loopback and inside hosts."""
BUFFER_MB: Final = 64
"""Size of the kernel's packet buffer."""
TOOLS: Final = ("dumpcap", "tcpdump", "scapy")
"""Capture tools, in the order of preference."""

_TUNNEL_PORTS: Final = (4789, 4790, 8472, 6081, 2152)  # as in kwsniff/core/capture/tunnels.pyx
_CARRIERS: Final = " or ".join(
    [f"udp port {port}" for port in _TUNNEL_PORTS]
    + [f"{ip} proto {protocol}" for ip in ("ip", "ip6") for protocol in (47, 4, 41)]
    # Later fragments have no ports.
    + ["(ip proto 17 and ip[6:2] & 0x1fff != 0)", "ip6 proto 44"]
)
_NOT_DEVICES = re.compile(r"any|nflog(:[\d,-]+)?|nfqueue(:[\d,-]+)?")


def interfaces() -> list[str]:
    """Names of all interfaces."""
    return [*(name for _, name in socket.if_nameindex()), "any"]


def kernel_filter(ports: Sequence[int], expression: str | None, *, tunnels: bool = False) -> str:
    """The given filter, or TCP on these ports, or all TCP (libpcap syntax). With `tunnels` also every
    packet that may contain another one, and its fragments: the kernel does not look inside."""
    if expression is not None:
        return expression
    wanted = "tcp and (" + " or ".join(f"port {port}" for port in ports) + ")" if ports else "tcp"
    return f"({wanted}) or {_CARRIERS}" if tunnels else wanted


def open_live(
    interface: str | Sequence[str],
    *,
    expression: str,
    tool: str | None = None,
    snaplen: int = SNAPLEN,
    buffer_mb: int = BUFFER_MB,
) -> LiveSource:
    """Starts a capture; dumpcap can capture on several interfaces. The capture runs when this returns.

    `tool`: one of TOOLS. By default the first one that is installed, permitted, and reports kernel drops
    while it
    runs, else the first permitted one; scapy only if neither dumpcap nor tcpdump is installed. Raises
    CaptureError (no such interface, not permitted, bad filter, no tool) with advice in one line.
    """
    if tool is not None and tool not in TOOLS:
        raise UsageError(f"unknown capture tool {tool!r}; known: {', '.join(TOOLS)}")
    names = [interface] if isinstance(interface, str) else list(interface)
    for name in names:
        _check_interface(name)
    if len(names) > 1 and tool not in (None, "dumpcap"):
        raise UsageError(f"{tool} captures on one interface; several need dumpcap")
    tools = [tool] if tool else TOOLS[: 2 if len(names) == 1 else 1]
    if found := _open_first(tools, names, expression, snaplen, buffer_mb):
        return found
    if len(names) > 1:
        raise CaptureError(f"several interfaces need dumpcap, which is not installed{unusable(['dumpcap'])}")
    if tool in (None, "scapy"):
        return _open_scapy(names[0], expression, snaplen, buffer_mb, asked=tool is not None)
    raise CaptureError(f"{tool} is not installed{unusable([tool])}")


def _open_first(
    tools: Sequence[str], interfaces: Sequence[str], expression: str, snaplen: int, buffer_mb: int
) -> LiveSource | None:
    """The first tool that reports its drops, else the first permitted one; None if none is installed."""
    from kwsniff.sources.capture_tools import NotPermitted, Recorder

    refused: CaptureError | None = None
    first: Recorder | None = None
    for name in tools:
        program = None if name == "scapy" else shutil.which(name)
        if program is None:
            continue
        try:
            found = Recorder(
                name, program, interfaces, expression=expression, snaplen=snaplen, buffer_mb=buffer_mb
            )
        except NotPermitted as error:
            refused = refused or error
            continue
        if found.tells_drops and first is not None:
            first.stop()
            first.close()
        if found.tells_drops:
            return found
        first = first or found
    if first is None and refused:
        raise refused
    return first


def _check_interface(interface: str) -> None:
    there = interfaces()
    if interface not in there and not _NOT_DEVICES.fullmatch(interface):
        nor = " and no such file" if "/" in interface or "." in interface else ""
        raise CaptureError(f"no such interface{nor}: {interface!r}; interfaces: {', '.join(there)}")


def _open_scapy(interface: str, expression: str, snaplen: int, buffer_mb: int, *, asked: bool) -> LiveSource:
    try:
        from kwsniff.sources.scapy_source import Sniffer
    except ImportError as error:
        missing = "scapy is not" if asked else "neither dumpcap nor tcpdump nor scapy is"
        raise CaptureError(
            f"{missing} installed{unusable(TOOLS[:2])}; "
            "install wireshark-common or tcpdump with the system's package manager, or run pip install "
            "'.[capture]' in a "
            "clone of the repository"
        ) from error
    return Sniffer(interface, expression, snaplen, buffer_mb)
