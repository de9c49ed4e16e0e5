"""Retention of files, by age or total size; the oldest are deleted first."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TABLE: Final = re.compile(r"(\d{8}T\d{6}\.\d{6}Z-\d{6})\.parquet")
_PACKETS: Final = re.compile(r"packets-(\d{8}T\d{6}\.\d{6}Z-\d{6})\.pcap(?:ng)?")


@dataclass(frozen=True, slots=True)
class Retention:
    """Keeps files for `seconds` after completion, and at most `most_bytes` in total; None: no limit."""

    seconds: float | None = None
    most_bytes: int | None = None

    def __bool__(self) -> bool:
        return self.seconds is not None or self.most_bytes is not None

    def apply(self, directory: Path, now: float) -> int:
        """Deletes excess files of this and earlier runs in a folder of tables; returns their number.
        `now`: seconds since the epoch. Only deletes files of `kwsniff live`."""
        found = sorted(_files(directory))
        total = sum(size for _, _, size, _ in found)
        removed = 0
        for completed, _, size, path in found:
            old = self.seconds is not None and now - completed > self.seconds
            large = self.most_bytes is not None and total > self.most_bytes
            if not old and not large:
                break
            with suppress(OSError):
                path.unlink()
                removed += 1
            total -= size
        return removed


def _files(directory: Path) -> Iterable[tuple[float, str, int, Path]]:
    """Time of completion, name (orders files of the same time), size, path."""
    for pattern, expression in (("*/*.parquet", _TABLE), ("packets/packets-*", _PACKETS)):
        for path in directory.glob(pattern):
            name = expression.fullmatch(path.name)
            if not name or path.parent.name.startswith("."):
                continue
            with suppress(OSError):
                status = path.stat()
                yield status.st_mtime, name[1], status.st_size, path
