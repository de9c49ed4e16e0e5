"""Chosen calls in a folder of tables, with their times: what `show --tables` has to read of a capture."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.errors import UsageError
from kwsniff.filter.expression import Filter
from kwsniff.filter.stored_rows import resolve_stored, stored_errors
from kwsniff.findings.views import is_folder_of_tables
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import REQUEST, RESPONSE, Field
from kwsniff.layout.spoken import catalogs
from kwsniff.tables.arrays import Numbers, whole_numbers
from kwsniff.tables.schema import TABLES
from kwsniff.tables.stored_files import files_of_tables

_TIMES: Final = ("request_time", "request_end_time", "response_time", "response_end_time")
_NUMBERS: Final = (
    "call_id", "connection_id", "broker_port", "request_frame", "client_port", "correlation_id", *_TIMES,
)  # fmt: skip
_WORDS: Final = frozenset(
    column.name
    for table in ("api_calls", "connections", "captures")
    for column in TABLES[table].columns
    if column.type == "string"
)
"""Read as codes: pyarrow's own ways to code and to filter take longer to load than a call to be found."""
_NONE: Final = -1
_MICROSECOND: Final = 1_000
_WHOLE: Final = ("answered", "no_response_expected")
"""Whose packets are all there: what becomes of others shows at the end of the capture."""
_MOST_CALLS: Final = 100_000
_MOST_NAMES: Final = 20


@dataclass(frozen=True, slots=True)
class Span:
    """Nanoseconds since the epoch: from one time on and before the other."""

    since: int
    until: int


class Place(NamedTuple):
    """Identifies a request independently of call ids: its capture, first packet, sender, correlation id."""

    capture: int
    frame: int
    client_port: int
    correlation_id: int


class Stored(NamedTuple):
    """What the tables have of a call."""

    call_id: int
    connection_id: int
    status: str


@dataclass(frozen=True, slots=True)
class Known:
    """Calls that a filter chooses."""

    calls: Sequence[Stored] | None
    """None: too many to be worth a list."""
    ports: tuple[int, ...]
    """Of their brokers."""
    span: Span | None
    """In which all their packets passed; None: not known, or reading it alone would not show or save much."""
    places: Mapping[Place, Stored] = field(default_factory=dict)
    """The same calls, where there is a span."""
    naming: tuple[Span, ...] = ()
    """When calls passed that tell the names of their topics."""


class _Rows:
    """The chosen rows, column by column."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = {name: [] for name in _NUMBERS}
        self.capture: list[str] = []
        self.status: list[str] = []
        self.topics: set[str] = set()

    def __len__(self) -> int:
        return len(self.status)

    def add(self, batch: pa.RecordBatch, places: Numbers) -> None:
        for name in _NUMBERS:
            self.numbers[name] += whole_numbers(batch[name], null=_NONE)[places].tolist()
        self.capture += _words(batch["capture"], places)
        self.status += _words(batch["status"], places)
        for place in places.tolist():
            if len(self.topics) > _MOST_NAMES:
                break
            self.topics.update(batch["topics"].slice(place, 1).to_pylist()[0] or ())


def known_calls(
    folder: str | os.PathLike[str], captures: Sequence[str], filter_: Filter, *, follows: bool = False
) -> Known:
    """The calls of a run over these captures that a filter chooses.

    `follows`: messages can be read only by who has seen their connection from its beginning, as in TLS.
    Raises UsageError where the folder holds no tables, or those of other captures or of several runs.
    """
    files = _files(folder)
    bounds = _bounds(files, captures, folder)
    filter_ = resolve_stored(files, filter_)
    errors = stored_errors(files, filter_)
    rows = _Rows()
    columns = dict.fromkeys(("run_id", *sorted(filter_.columns), *_NUMBERS, "capture", "status", "topics"))
    for batch in _batches(files["api_calls"], [*columns], filter_.numbers("call_id")):
        rows.add(batch, np.flatnonzero(filter_.rows(batch, errors)))
        if len(rows) > _MOST_CALLS:
            return Known(None, (), None)
    if not len(rows):
        return Known((), (), None)
    numbers = rows.numbers
    stored = [*map(Stored, numbers["call_id"], numbers["connection_id"], rows.status)]
    ports = tuple(sorted(set(numbers["broker_port"])))
    span = None
    if not follows and set(rows.status) <= set(_WHOLE) and not _is_encrypted(files, numbers["connection_id"]):
        span = _span_of(numbers)
    if span is None or bounds is None or 2 * (span.until - span.since) > bounds.until - bounds.since:
        return Known(stored, ports, None)
    order = {PurePath(name).name: number for number, name in enumerate(captures)}
    where = [order[PurePath(name).name] for name in rows.capture]
    places = map(Place, where, numbers["request_frame"], numbers["client_port"], numbers["correlation_id"])
    return Known(stored, ports, span, dict(zip(places, stored, strict=True)), (*_naming(files, rows.topics),))


def _files(folder: str | os.PathLike[str]) -> dict[str, list[str]]:
    if not is_folder_of_tables(folder):
        raise UsageError(
            f"{os.fspath(folder)}: holds no tables of kwsniff; make them with `kwsniff analyze -o`"
        )
    files = files_of_tables(Path(folder))
    for name in ("api_calls", "captures"):
        if not files.get(name):
            raise UsageError(f"{os.fspath(folder)}: holds no table {name}, which tells where packets are")
    return files


def _batches(
    files: Sequence[str], columns: list[str], calls: Iterable[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows; with `calls`, of parts of the files that may hold one of these numbers."""
    for name in files:
        with pq.ParquetFile(name, read_dictionary=[each for each in columns if each in _WORDS]) as file:
            missing = set(columns) - set(file.schema_arrow.names)
            if missing:
                raise UsageError(f"{name}: from an earlier kwsniff, without {min(missing)}; write it again")
            groups = [*range(file.metadata.num_row_groups)]
            if calls is not None:
                groups = [group for group in groups if _may_hold(file.metadata.row_group(group), calls)]
            if groups:
                yield from file.iter_batches(row_groups=groups, columns=columns)


def _may_hold(group: pq.RowGroupMetaData, calls: Iterable[int]) -> bool:
    told = group.column(0).statistics  # call_id comes first
    return told is None or not told.has_min_max or any(told.min <= call <= told.max for call in calls)


def _bounds(
    files: Mapping[str, Sequence[str]], captures: Sequence[str], folder: str | os.PathLike[str]
) -> Span | None:
    """From the first to the last packet. Raises UsageError for tables of something else."""
    told: dict[str, list[Any]] = {"capture": [], "run_id": [], "first_time": [], "last_time": []}
    for batch in _batches(files["captures"], [*told, "format"]):
        read = [row for row, form in enumerate(batch["format"].to_pylist()) if form is not None]
        told["capture"] += _words(batch["capture"], np.array(read, np.int64))
        told["run_id"] += batch["run_id"].to_pylist()
        for name in ("first_time", "last_time"):  # as numbers: times as Python's would load pandas
            told[name] += [time for time in whole_numbers(batch[name], null=_NONE).tolist() if time != _NONE]
    if len(set(told["run_id"])) > 1:
        raise UsageError(
            f"{os.fspath(folder)}: holds tables of several runs, whose calls have the same numbers"
        )
    made_of = sorted(PurePath(name).name for name in told["capture"])
    named = sorted(PurePath(name).name for name in captures)
    if made_of != named:
        raise UsageError(
            f"{os.fspath(folder)}: was made of {_join_names(made_of)}, not of {_join_names(named)}; "
            "name the same captures"
        )
    if not told["first_time"] or not told["last_time"]:
        return None
    return Span(min(told["first_time"]) * _MICROSECOND, max(told["last_time"]) * _MICROSECOND)


def _join_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) or "nothing"
    return f"{shown} and {len(names) - 3:,} more" if len(names) > 3 else shown


def _is_encrypted(files: Mapping[str, Sequence[str]], connections: Sequence[int]) -> bool:
    """Whether one of the connections was opened TLS, as far as the tables tell."""
    left = set(connections)
    for batch in _batches(files.get("connections", ()), ["connection_id", "tls_version"]):
        numbers = whole_numbers(batch["connection_id"], null=_NONE)
        rows = np.flatnonzero(np.isin(numbers, [*left]))
        if (whole_numbers(batch["tls_version"].indices, null=_NONE)[rows] != _NONE).any():
            return True
        left.difference_update(numbers[rows].tolist())
    return bool(left)


def _span_of(numbers: Mapping[str, Sequence[int]]) -> Span | None:
    if _NONE in numbers["request_time"]:
        return None
    times = [time for name in _TIMES for time in numbers[name] if time != _NONE]
    # Times in tables are rounded down, to the microsecond.
    return Span(min(times) * _MICROSECOND, (max(times) + 1) * _MICROSECOND)


def _words(column: pa.DictionaryArray, places: Numbers) -> list[str]:
    words = column.dictionary.to_pylist()
    return [words[code] for code in whole_numbers(column.indices, null=_NONE)[places].tolist()]


def _naming(files: Mapping[str, Sequence[str]], topics: set[str]) -> Iterator[Span]:
    """When each of these topics was named: where other messages say ids, these say both."""
    wanted = set(topics)
    if not wanted or len(wanted) > _MOST_NAMES:
        return
    telling = {*_telling(load_catalog())}
    columns = ["call_id", "topics", "api_key", "api_version", "status", *_TIMES]
    for batch in _batches(files["api_calls"], columns):
        keys = whole_numbers(batch["api_key"], null=_NONE)
        versions = whole_numbers(batch["api_version"], null=_NONE)
        says = np.zeros(batch.num_rows, np.bool_)
        for key, version in telling:
            says |= (keys == key) & (versions >= version)
        places = np.flatnonzero(says)
        for place, status in zip(places.tolist(), _words(batch["status"], places), strict=True):
            named = batch["topics"].slice(place, 1).to_pylist()[0] or ()
            if status == "answered" and wanted.intersection(named):
                wanted.difference_update(named)
                times = {
                    name: whole_numbers(batch[name], null=_NONE)[place : place + 1].tolist()
                    for name in _TIMES
                }
                if span := _span_of(times):
                    yield span
                if not wanted:
                    return


def _telling(catalog: Catalog) -> Iterator[tuple[int, int]]:
    """APIs that tell the name of a topic beside its id, and from which version on."""
    for each in catalogs(catalog).values():
        for api in each.own_apis():
            for way in (REQUEST, RESPONSE):
                message = each.message(api.key, way)
                versions = [*_both(message.fields)] if message else []
                if versions:
                    yield api.key, min(versions)


def _both(fields: Sequence[Field]) -> Iterator[int]:
    ids = [field.versions for field in fields if field.meaning is Meaning.TOPIC_ID]
    names = [field.versions for field in fields if field.meaning is Meaning.TOPIC]
    for one in ids:
        for other in names:
            if max(one.first, other.first) <= min(one.last, other.last):
                yield max(one.first, other.first)
    for each in fields:
        yield from _both(each.children)
