"""Which files a read of the data source means: patterns, folders, and options that choose among files.

As Spark's own file sources: folders called `name=value` are descended into, other nested ones with
`recursiveFileLookup`; `pathGlobFilter` looks at names of files, `modifiedAfter` and `modifiedBefore` at their
times.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pyarrow.fs as pafs

from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.files import in_natural_order
from kwsniff.sources.paths import local_path
from kwsniff.sources.times import Moment, parse_moment
from kwsniff.spark.file_systems import is_uri
from kwsniff.spark.source_options import flag
from kwsniff.spark.stored_captures import Stores, list_folder, names_of_pattern, state_of

_ALTERNATIVES: Final = re.compile(r"(.*?)\{([^{}]*)\}(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Seen:
    """A file or folder. `modified`: nanoseconds since 1970; None: the store does not say."""

    name: str
    size: int
    modified: int | None
    is_folder: bool

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Choice:
    """Of files, by the options of a read."""

    pattern: str | None
    is_recursive: bool
    after: Moment | None
    before: Moment | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> "Choice":
        """Raises UsageError."""
        after, before = (_moment(options, name) for name in ("modifiedAfter", "modifiedBefore"))
        return cls(options.get("pathglobfilter"), flag(options, "recursiveFileLookup"), after, before)

    @property
    def is_everything(self) -> bool:
        """Whether no file is left out."""
        return not (self.pattern or self.after or self.before)

    def takes(self, file: Seen) -> bool:
        """Whether it is one of those chosen."""
        if self.pattern and not any(fnmatchcase(file.base, each) for each in _plain(self.pattern)):
            return False
        if file.modified is None:
            return not (self.after or self.before)
        since = self.after is None or file.modified > self.after.nanoseconds
        return since and (self.before is None or file.modified < self.before.nanoseconds)

    def descends(self, folder: Seen) -> bool:
        """Whether the files in this nested folder are meant."""
        if folder.base.startswith((".", "_")):
            return False
        return self.is_recursive or "=" in folder.base


def find_files(paths: Sequence[str], choice: Choice, stores: Stores) -> list[Seen]:
    """The files, and the folders that are read whole. Raises CaptureError, UsageError."""
    found = [each for path in paths for each in _files_of(path, choice, stores)]
    if not found:
        raise CaptureError(f"{paths[0]}: none of the files there is chosen by pathGlobFilter and its like")
    return list(dict.fromkeys(found))


def _files_of(path: str, choice: Choice, stores: Stores) -> Iterator[Seen]:
    for name in names_of_pattern(path, stores) if is_uri(path) else _local_names(local_path(path)):
        seen = _look(name, stores)
        if not seen.is_folder:
            yield from (seen,) if choice.takes(seen) else ()
        elif (
            not is_uri(name) and choice.is_everything and not any(map(choice.descends, _inside(seen, stores)))
        ):
            yield seen  # other files in it are reported as elsewhere
        else:
            yield from _files_in(seen, choice, stores)


def _files_in(folder: Seen, choice: Choice, stores: Stores) -> Iterator[Seen]:
    for each in _inside(folder, stores):
        if each.is_folder:
            if choice.descends(each):
                yield from _files_in(each, choice, stores)
        elif choice.takes(each) and not each.base.startswith("."):
            yield each


def _inside(folder: Seen, stores: Stores) -> list[Seen]:
    if is_uri(folder.name):
        seen = {
            info_name: _read_info(info_name, info) for info_name, info in list_folder(folder.name, stores)
        }
    else:
        names = [str(path) for path in Path(folder.name).iterdir() if path.exists()]
        seen = {name: _look(name, stores) for name in names}
    return [seen[name] for name in in_natural_order(list(seen))]


def _look(name: str, stores: Stores) -> Seen:
    if is_uri(name):
        return _read_info(name, state_of(name, stores))
    try:
        state = Path(name).stat()
    except FileNotFoundError:
        raise CaptureError(f"{name}: no such file; check the path") from None
    return Seen(name, state.st_size, state.st_mtime_ns, Path(name).is_dir())


def _read_info(name: str, info: Any) -> Seen:
    return Seen(name, info.size or 0, info.mtime_ns, info.type == pafs.FileType.Directory)


def _local_names(text: str) -> list[str]:
    if Path(text).exists() or not set(text) & set("*?["):
        return [text]
    path = Path(text)
    root = Path(path.anchor) if path.is_absolute() else Path()
    found = sorted(str(each) for each in root.glob(str(path.relative_to(root) if path.anchor else path)))
    if not found:
        raise UsageError(f"{text}: no file matches this pattern")
    return found


def _moment(options: Mapping[str, str], name: str) -> Moment | None:
    text = options.get(name.lower())
    if text is None:
        return None
    moment = parse_moment(text, name)
    if moment.kind != "at":
        raise UsageError(f"option {name} {text!r}: give a date and time, for example 2026-11-20T10:00:00")
    return moment


def _plain(pattern: str) -> list[str]:
    """Hadoop's `{a,b}` as patterns of their own."""
    found = _ALTERNATIVES.fullmatch(pattern)
    if found is None:
        return [pattern]
    return [each for word in found[2].split(",") for each in _plain(f"{found[1]}{word}{found[3]}")]
