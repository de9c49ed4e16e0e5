"""A file of a store as Python's: each read is one request, repeated where the store refuses it.

Arrow repeats refused requests itself, but for one kind: it reads into a buffer of the size that was asked
for, and where the store's refusal is longer than that, it fails. S3's SlowDown has about 300 bytes.
"""

import io
import random
import time
from collections.abc import Callable
from typing import Any, Final

_REFUSED: Final = "Failed to flush response stream"
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 10.0


class StoredFile(io.RawIOBase):
    """A file of Arrow's, to read anywhere in it. `attempts`: of each read."""

    def __init__(self, file: Any, attempts: int) -> None:
        super().__init__()
        self._file = file
        self._attempts = attempts

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def readinto(self, space: Any, /) -> int:
        """Fills it, up to the end of the file. Raises OSError."""
        return int(self._repeat(lambda: self._file.readinto(space)))

    def readall(self) -> bytes:
        """The rest. Raises OSError."""
        return bytes(self._repeat(self._file.read))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """The new position."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The position."""
        return int(self._file.tell())

    def size(self) -> int:
        """Of the file, in bytes."""
        return int(self._file.size())

    def close(self) -> None:
        """Ends reading."""
        if not self.closed:
            self._file.close()
        super().close()

    def _repeat(self, read: Callable[[], Any]) -> Any:
        begin = self._file.tell()
        for attempt in range(self._attempts):
            try:
                return read()
            except OSError as error:
                if _REFUSED not in str(error) or attempt == self._attempts - 1:
                    raise
            pause = min(_FIRST_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - so that tasks do not ask together
            self._file.seek(begin)
        raise AssertionError("the last attempt returns or raises")
