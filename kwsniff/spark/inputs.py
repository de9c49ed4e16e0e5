"""The captures of a run, their order, and their distribution to tasks.

Connections continue from file to file, so the files are read in the order of their first packets, not of
the command line. Uncompressed files are cut into splits; each compressed one is a single split.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.sources.files import STANDARD_INPUT, Found, Unread, find_captures, in_natural_order
from kwsniff.sources.order import in_order, look_into_all
from kwsniff.sources.paths import local_path
from kwsniff.spark.file_systems import is_uri
from kwsniff.spark.serialization import register
from kwsniff.spark.stored_captures import Stores, look_into_store

SPLIT_BYTES: Final = 128 << 20
"""Least size of a split that is not asked for: smaller ones cost more in tasks than they bring."""

_MOST_SPLIT_BYTES: Final = 2 << 30
_SPLITS_PER_CORE: Final = 3
_BUCKET_BYTES: Final = 128 << 20
_MOST_BUCKET_BYTES: Final = 4 << 30
_BUCKETS_PER_CORE: Final = 2  # one large connection may keep a core busy while others share out the rest
_LEAST_TASK_BYTES: Final = 4096
_PACKED: Final = 4  # bytes of packets in a compressed one, about
_MOST_BUCKETS: Final = 65536


@dataclass(frozen=True, slots=True)
class Capture:
    """One file."""

    name: str
    size: int
    """Bytes of the file as it is."""
    head: bytes
    """What it takes to read it from any of its records."""
    first_time: int | None
    first_second: int = 0
    """What pcap's first record begins with."""
    compression: str | None = None
    problem: Unread | None = None
    """Why nothing of it can be read."""


@register
@dataclass(frozen=True, slots=True)
class Split:
    """A part of a capture (its number among all): from the first record at or behind `begin` to the first one
    at or behind `end`. Of a compressed one: all of it."""

    capture: int
    name: str
    size: int
    head: bytes
    first_second: int
    compression: str | None
    begin: int
    end: int
    exact: bool = True
    """Whether a record begins at `begin`; else it has to be found."""


def find_inputs(paths: Sequence[str | os.PathLike[str]], stores: Stores | None = None) -> list[Capture]:
    """The captures meant by `paths`, ordered by the time of their first packet; `stores` open URIs.

    What is there and cannot be read is named with its problem and comes last. Raises CaptureError when a path
    is missing or nothing can be read, UsageError for standard input.
    """
    for path in paths:
        if os.fspath(path) == STANDARD_INPUT:
            raise UsageError(
                "standard input cannot be distributed to tasks; use kwsniff analyze, or write it to a file"
            )
    here = [name for path in paths if stores is None or not is_uri(path) for name in _expand(path)]
    found = find_captures(here) if here else Found([], [])
    looked, unread = look_into_all(found.captures)
    unread[:0] = found.unread
    for path in paths:
        if stores is not None and is_uri(path):
            there, missed = look_into_store(os.fspath(path), stores)
            looked += there
            unread += missed
    looked = in_order(looked, unread)
    for each in looked:
        if not each.head:
            raise UsageError(
                f"{each.name} is not a file, so it cannot be distributed to tasks; use kwsniff analyze"
            )
    return [
        *(
            Capture(each.name, each.size, each.head, each.first_time, each.first_second, each.compression)
            for each in looked
        ),
        *(Capture(each.name, each.size or 0, b"", None, problem=each) for each in unread),
    ]


def _expand(path: str | os.PathLike[str]) -> Sequence[str | os.PathLike[str]]:
    """What a pattern matches; everything else as it is."""
    name = local_path(path)
    if Path(name).exists() or not has_magic(name):
        return [path]
    parts = Path(name).parts
    first = next(number for number, part in enumerate(parts) if has_magic(part))
    found = Path(*parts[:first]).glob(str(Path(*parts[first:])))
    return in_natural_order([str(each) for each in found]) or [path]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How work is shared out. Tasks of the second stage take several buckets where these are small."""

    split_bytes: int
    buckets: int
    tasks: int


def sizes(captures: Sequence[Capture], cores: int) -> Sizes:
    """By how much there is to read: so that tasks are neither too small to be worth starting nor more than
    can be looked over."""
    plain = sum(capture.size * (_PACKED if capture.compression else 1) for capture in captures)
    split = min(max(plain // (_SPLITS_PER_CORE * cores), SPLIT_BYTES), _MOST_SPLIT_BYTES)
    worth = -(-plain // _BUCKET_BYTES)
    least = max(-(-plain // _MOST_BUCKET_BYTES), 1)
    buckets = max(min(worth, _BUCKETS_PER_CORE * cores), least)
    return Sizes(split, min(buckets, _MOST_BUCKETS), max(worth, _BUCKETS_PER_CORE * cores))


def share_out(captures: Sequence[Capture], split_bytes: int) -> list[list[Split]]:
    """What each task reads: about `split_bytes` of neighbours, or a compressed file that is larger."""
    tasks: list[list[Split]] = []
    room = 0
    for number, capture in enumerate(captures):
        for split in _cut(number, capture, split_bytes):
            size = split.end - split.begin
            if not tasks or size > room:
                tasks.append([])
                room = max(split_bytes, _LEAST_TASK_BYTES)
            tasks[-1].append(split)
            room -= size
    return tasks


def _cut(number: int, capture: Capture, split_bytes: int) -> Iterator[Split]:
    step = capture.size if capture.compression else split_bytes
    for begin in range(0, max(capture.size, 1), max(step, 1)):
        end = min(begin + step, capture.size)
        yield Split(
            number,
            capture.name,
            capture.size,
            capture.head,
            capture.first_second,
            capture.compression,
            begin,
            end,
            exact=begin == 0,
        )
