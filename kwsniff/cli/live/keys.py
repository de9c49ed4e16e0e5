"""Keys of a terminal, one at a time, without waiting for Enter."""

import os
import select
import sys
import termios
import tty
from contextlib import suppress
from typing import Self

_NAMES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left",
    b"\x1bOA": "up", b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left",
    b"\r": "enter", b"\n": "enter", b"\x1b": "escape", b"\x7f": "backspace", b"\x08": "backspace",
    b"\t": "tab", b"\x1b[Z": "backtab", b" ": "space",
}  # fmt: skip


class Keys:
    """Reads standard input in cbreak mode while the block runs, or the terminal if standard input is not one;
    without a terminal there are no keys."""

    def __init__(self) -> None:
        self._before: list[object] | None = None
        self._descriptor = -1
        self._own = False

    def __enter__(self) -> Self:
        try:
            self._descriptor = sys.stdin.fileno()
            if not os.isatty(self._descriptor):  # it is the capture
                self._descriptor = os.open("/dev/tty", os.O_RDONLY)
                self._own = True
            self._before = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor)
        except (AttributeError, OSError, ValueError, termios.error):
            self._before = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
        if self._own:
            os.close(self._descriptor)
            self._own = False

    @property
    def are_there(self) -> bool:
        """Whether keys can be read."""
        return self._before is not None

    def wait(self, seconds: float) -> list[str]:
        """Returns as soon as keys are pressed, at the latest after that time: names (up, enter, escape,
        ...) or
        characters."""
        if self._before is None or not select.select([self._descriptor], [], [], seconds)[0]:
            return []
        data = os.read(self._descriptor, 256)
        if not data:  # the terminal is gone
            self._before = None
        return parse_keys(data)


def parse_keys(data: bytes) -> list[str]:
    """Keys in the bytes of a terminal, without unknown escape sequences."""
    keys = []
    while data:
        size = 1
        if data[:2] in (b"\x1b[", b"\x1bO"):
            size = 2
            while size < len(data) and not 0x40 <= data[size] <= 0x7E:
                size += 1
            size += 1
        elif data[0] >= 0xC0:
            size = 2 + (data[0] >= 0xE0) + (data[0] >= 0xF0)
        key, data = data[:size], data[size:]
        if name := _NAMES.get(key):
            keys.append(name)
        elif len(key) == 1 or key[0] >= 0xC0:
            text = key.decode(errors="ignore")
            if text.isprintable() and text:
                keys.append(text)
    return keys
