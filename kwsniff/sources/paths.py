"""Names of files and folders: paths, and `file:` URIs (RFC 8089)."""

import os
import re
from typing import Final
from urllib.parse import unquote

from kwsniff.errors import UsageError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# pathlib merges two slashes into one.
_SCHEME_OF_A_PATH: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_THIS_MACHINE: Final = ("", "localhost")


def local_path(given: str | os.PathLike[str]) -> str:
    """The local path of an input or output. Raises UsageError for another URI."""
    name = os.fspath(given)
    if name[:6].lower() == "file:/":
        host, path = "", name[5:]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            path = slash + rest
        if host.lower() not in _THIS_MACHINE or not path:
            raise UsageError(f"{name}: is on another machine; a local file: URI is file:///folder/file")
        return unquote(path, errors="surrogateescape")
    scheme = (_SCHEME if isinstance(given, str) else _SCHEME_OF_A_PATH).match(name)
    if scheme:
        raise UsageError(
            f"{name}: kwsniff reads and writes local paths, not {scheme[1]}; mount it or copy it"
        )
    return name
