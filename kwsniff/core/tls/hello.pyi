from collections.abc import Iterable

from typing_extensions import Buffer

def read(
    parts: Iterable[tuple[int, Buffer | None]],
) -> tuple[int | None, str | None, str | None, str | None]: ...
