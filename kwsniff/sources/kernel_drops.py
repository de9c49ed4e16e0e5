"""Packets dropped by the kernel, read from the packet sockets of a tool that reports them only at its end.

pidfd_getfd(2) returns a descriptor of another process to processes that may trace it, such as root's. Reading
the kernel's counter resets it, so the tool does not see drops counted here; the sum of both is the total.
"""

import ctypes
import os
import platform
import socket
import struct
import sys
from pathlib import Path
from typing import Final, Self

_GETFD: Final = 438  # the same number on every architecture that has it in Linux's common table
_ARCHITECTURES: Final = ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x")
_SOL_PACKET: Final = 263
_STATISTICS: Final = 6
_DROPPED_AT: Final = struct.Struct("=II")  # packets, drops
_MOST_BYTES: Final = 12  # of TPACKET_V3


class KernelDrops:
    """The packet sockets of a process; empty without the permission to get them."""

    def __init__(self, pid: int) -> None:
        self.dropped = 0
        self._sockets = list(_packet_sockets(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_known(self) -> bool:
        """Whether there are sockets to read."""
        return bool(self._sockets)

    def count(self) -> int:
        """Dropped packets since the start, as read here."""
        for each in self._sockets:
            try:
                told = each.getsockopt(_SOL_PACKET, _STATISTICS, _MOST_BYTES)
            except OSError:  # the interface vanished
                continue
            self.dropped += _DROPPED_AT.unpack_from(told)[1]
        return self.dropped

    def close(self) -> None:
        """Closes the sockets."""
        for each in self._sockets:
            each.close()
        self._sockets = []


def _packet_sockets(pid: int) -> list[socket.socket]:
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return []
    try:
        numbers = _descriptors(pid)
        handle = os.pidfd_open(pid) if numbers else -1
    except (OSError, AttributeError):
        return []
    found = []
    try:
        for number in numbers:
            copy = _call(handle, number)
            if copy >= 0:
                found.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, fileno=copy))
    finally:
        if handle >= 0:
            os.close(handle)
    return found


def _descriptors(pid: int) -> list[int]:
    """The packet sockets among them: /proc/net/packet lists these by inode."""
    lines = Path("/proc/net/packet").read_text().splitlines()[1:]
    inodes = {line.split()[-1] for line in lines}
    folder = Path(f"/proc/{pid}/fd")
    links = {entry.name: str(entry.readlink()) for entry in folder.iterdir()}
    return [int(name) for name, to in links.items() if to[:8] == "socket:[" and to[8:-1] in inodes]


def _call(handle: int, number: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_GETFD, handle, number, 0))
