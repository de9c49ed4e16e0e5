"""Captures in stores (`s3a://`, `gs://`, `abfs://`, `hdfs://`): listing and reading.

They are reached through Arrow's file systems with the credentials of Spark's configuration, which travel to
tasks with their code and are written nowhere.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow.fs as pafs

from kwsniff.errors import CaptureError
from kwsniff.sources.files import Opened, Opener, Unread, check_capture, in_natural_order, why_of
from kwsniff.sources.order import Looked, look_into
from kwsniff.spark.file_systems import attempts_at, check_uri, file_system, is_uri, settings_for
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.stored_file import StoredFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Stores = tuple[tuple[str, Settings], ...]
"""Beginnings of URIs (scheme and host), and the settings that open what lies there."""

_AT_A_TIME: Final = 32
_ROOT: Final = re.compile(r"[^:]+://[^/]*")
_PATTERN: Final = re.compile(r"[*?\[]")


def stores_of(paths: Sequence[Any], spark: "SparkSession") -> Stores:
    """The settings for all URIs among these. Raises UsageError for a URI of no store we know."""
    roots = dict.fromkeys(root_of(check_uri(path)) for path in paths if is_uri(path))
    return tuple((root, settings_for(spark, root)) for root in roots)


def opener_of(name: str, stores: Stores | None) -> Opener | None:
    """What opens a capture; None for one of this machine."""
    if not stores or not is_uri(name):
        return None
    return partial(_open, settings=_settings(name, stores))


def _open(uri: str, settings: Settings) -> Opened:
    files, path = file_system(uri, settings)
    try:
        file = files.open_input_file(path)
        return Opened(StoredFile(file, attempts_at(uri, settings)), int(file.size()))
    except FileNotFoundError as error:
        raise CaptureError(f"{uri}: no such file; check the URI") from error
    except OSError as error:
        raise CaptureError(f"{uri}: cannot read ({_first_line(error)})") from error


def look_into_store(uri: str, stores: Stores) -> tuple[list[Looked], list[Unread]]:
    """The captures that a URI means: a file, a folder or a pattern; and what cannot be read, and why. Raises
    CaptureError where there is nothing."""
    check_uri(uri)
    try:
        names, unread = _names(uri, _settings(uri, stores))
    except OSError as error:
        raise CaptureError(f"{uri}: cannot read ({_first_line(error)})") from error
    looked: list[Looked] = []
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        for found in threads.map(partial(_look, stores=stores), names):
            if isinstance(found, Unread):
                unread.append(found)
            else:
                looked.append(found)
    return looked, unread


def _look(name: str, stores: Stores) -> Looked | Unread:
    opener = opener_of(name, stores)
    try:
        check_capture(name, opener)
        return look_into(name, opener)
    except CaptureError as error:
        return Unread(name, why_of(name, error), 0)
    except OSError as error:
        return Unread(name, f"cannot read ({_first_line(error)})", 0)


def names_of_pattern(uri: str, stores: Stores) -> list[str]:
    """The files and folders that a pattern fits; a URI without one as it is. Raises CaptureError."""
    with _translate_errors(uri):
        return _expand(check_uri(uri), _settings(uri, stores), with_folders=True)


def state_of(uri: str, stores: Stores) -> "pafs.FileInfo":
    """Of a file or folder. Raises CaptureError."""
    with _translate_errors(uri):
        files, path = file_system(uri, _settings(uri, stores))
        info = files.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise CaptureError(f"{uri}: no such file; check the URI")
    return info


def list_folder(uri: str, stores: Stores) -> list[tuple[str, "pafs.FileInfo"]]:
    """Files and folders in a folder, by their URIs. Raises CaptureError."""
    with _translate_errors(uri):
        files, path = file_system(uri, _settings(uri, stores))
        return [(f"{uri}/{each.base_name}", each) for each in files.get_file_info(pafs.FileSelector(path))]


@contextmanager
def _translate_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CaptureError(f"{uri}: cannot read ({_first_line(error)})") from error


def _expand(uri: str, settings: Settings, *, with_folders: bool = False) -> list[str]:
    files, path = file_system(uri, settings)
    if not _PATTERN.search(path):
        return [uri]
    root = root_of(uri)
    before = len(file_system(root, settings)[1])  # the prefix of paths under the URI's root
    names = [f"{root}{each[before:]}" for each in _matching(files, path, with_folders=with_folders)]
    if not names:
        raise CaptureError(f"{uri}: no file matches this pattern")
    return names


def _names(uri: str, settings: Settings) -> tuple[list[str], list[Unread]]:
    names = _expand(uri, settings)
    if names != [uri]:
        return names, []
    files, path = file_system(uri, settings)
    info = files.get_file_info(path)
    if info.type == pafs.FileType.File:
        return [uri], []
    if info.type == pafs.FileType.NotFound:
        raise CaptureError(f"{uri}: no such file; check the URI")
    names, unread = [], []
    for each in files.get_file_info(pafs.FileSelector(path)):
        name = f"{uri.rstrip('/')}/{each.base_name}"
        if each.base_name.startswith("."):
            continue
        if each.type == pafs.FileType.Directory:
            why = "is a nested directory, which kwsniff does not read; give it explicitly to read it"
            unread.append(Unread(name, why, None))
        else:
            names.append(name)
    if not names and not unread:
        raise CaptureError(f"{uri}: no captures in this directory")
    return in_natural_order(names), unread


def _matching(files: Any, pattern: str, *, with_folders: bool) -> list[str]:
    """Files, and folders where they count, whose paths fit, part by part."""
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if _PATTERN.search(part))
    chosen = pafs.FileSelector("/".join(parts[:first]), recursive=first + 1 < len(parts))
    kinds = (pafs.FileType.File, *((pafs.FileType.Directory,) if with_folders else ()))
    found = [each.path for each in files.get_file_info(chosen) if each.type in kinds]
    return in_natural_order([path for path in found if _fits(path.split("/"), parts)])


def _fits(path: Sequence[str], parts: Sequence[str]) -> bool:
    return len(path) == len(parts) and all(map(fnmatchcase, path, parts))


def _settings(uri: str, stores: Stores) -> Settings:
    return dict(stores).get(root_of(uri), ())


def root_of(uri: str) -> str:
    """Scheme and host."""
    found = _ROOT.match(uri)
    return found[0] if found else uri


def _first_line(error: OSError) -> str:
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first
