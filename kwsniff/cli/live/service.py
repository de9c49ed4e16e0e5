"""Notifications for a service manager: ready, watchdog, stopping (sd_notify(3))."""

import os
import socket
import time
from contextlib import suppress


class Service:
    """Does nothing without NOTIFY_SOCKET."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._every = 0.0
        if self._address and os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
            with suppress(ValueError):
                self._every = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / 3
        self._due = 0.0

    def ready(self, status: str) -> None:
        """The capture has started."""
        self._say(f"READY=1\nSTATUS={status}\n")

    def turn(self, status: str) -> None:
        """The loop is alive."""
        if self._every and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every
            self._say(f"WATCHDOG=1\nSTATUS={status}\n")

    def stopping(self) -> None:
        """The remaining rows are being written."""
        self._say("STOPPING=1\n")

    def _say(self, text: str) -> None:
        if not self._address:
            return
        name = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(text.encode(), name)
