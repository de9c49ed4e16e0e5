"""Calls that a folder of tables knows, and when they passed, for who wants their messages and no others."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kwsniff.analysis import fitting_rows
from kwsniff.analysis.fitting_rows import FittingRows
from kwsniff.analysis.stored import Folder
from kwsniff.analysis.stored import open as open_tables
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import REQUEST, RESPONSE, Field
from kwsniff.tables.arrays import flags
from kwsniff.view.filters import Filters

_TIMES: Final = ("request_time", "request_end_time", "response_time", "response_end_time")
_PLACE: Final = ("capture", "request_frame", "client_port", "correlation_id")
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
    """By which a request is known again, whoever counts calls: its capture, first packet, sender, number."""

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
    """Calls that may fit."""

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


def known_calls(
    folder: str | os.PathLike[str], captures: Sequence[str], filters: Filters, *, follows: bool = False
) -> Known:
    """The calls of a run over these captures that may fit; what messages alone tell, their reader judges.

    `follows`: messages can be read only by who has seen their connection from its beginning, as in TLS.
    Raises UsageError where the folder holds no tables, or those of other captures or of several runs.
    """
    tables = open_tables(folder)
    _check(tables, captures)
    rows = FittingRows(filters, load_catalog(), generous=True)
    within = None if filters.calls is None else ds.field("call_id").isin([*filters.calls])
    names = dict.fromkeys((*fitting_rows.COLUMNS, *_PLACE, *_TIMES))
    found: list[pa.RecordBatch] = []
    many = 0
    for batch in tables.dataset("api_calls").to_batches(columns=[*names], filter=within):
        found.append(batch.filter(flags(rows.fitting(batch))))
        many += found[-1].num_rows
        if many > _MOST_CALLS:
            return Known(None, (), None)
    if not many:
        return Known((), (), None)
    calls = pa.Table.from_batches(found)
    columns = (calls[name].to_pylist() for name in ("call_id", "connection_id", "status"))
    stored = [*map(Stored, *columns)]
    ports = tuple(sorted(set(calls["broker_port"].to_pylist())))
    span = None
    if not follows and {each.status for each in stored} <= set(_WHOLE) and not _sealed(tables, calls):
        span = _short(_span_of(calls), tables)
    if span is None:
        return Known(stored, ports, None)
    numbers = {PurePath(name).name: number for number, name in enumerate(captures)}
    columns = (calls[name].to_pylist() for name in ("request_frame", "client_port", "correlation_id"))
    files = (numbers[PurePath(name).name] for name in calls["capture"].to_pylist())
    places = dict(zip(map(Place, files, *columns), stored, strict=True))
    return Known(stored, ports, span, places, tuple(_naming(tables, calls)))


def _check(tables: Folder, captures: Sequence[str]) -> None:
    if "api_calls" not in tables.names:
        raise UsageError(f"{tables.path}: holds no table api_calls; make it with `kwsniff analyze -o`")
    if "captures" not in tables.names:
        raise UsageError(f"{tables.path}: holds no table captures, which tells what the others were made of")
    told = tables.table("captures")
    told = told.filter(pc.is_valid(told["format"]))  # not those that could not be read
    if len(set(told["run_id"].to_pylist())) > 1:
        raise UsageError(f"{tables.path}: holds tables of several runs, whose calls have the same numbers")
    made_of = sorted(PurePath(name).name for name in told["capture"].to_pylist())
    named = sorted(PurePath(name).name for name in captures)
    if made_of != named:
        raise UsageError(
            f"{tables.path}: was made of {_listed(made_of)}, not of {_listed(named)}; name the same captures"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) or "nothing"
    return f"{shown} and {len(names) - 3:,} more" if len(names) > 3 else shown


def _sealed(tables: Folder, calls: pa.Table) -> bool:
    """Whether one of the connections was opened TLS, as far as the tables tell."""
    if "connections" not in tables.names:
        return True
    ids = calls["connection_id"].unique()
    rows = tables.dataset("connections").to_table(
        columns=["tls_version"], filter=ds.field("connection_id").isin(ids)
    )
    return bool(rows["tls_version"].null_count < rows.num_rows or rows.num_rows < len(ids))


def _span_of(calls: pa.Table) -> Span | None:
    first = [_nanoseconds(calls[name], least=True) for name in _TIMES]
    last = [_nanoseconds(calls[name], least=False) for name in _TIMES]
    if calls["request_time"].null_count:
        return None
    # Times in tables are rounded down.
    return Span(
        min(time for time in first if time is not None),
        max(time for time in last if time is not None) + _MICROSECOND,
    )


def _short(span: Span | None, tables: Folder) -> Span | None:
    """Where it is most of the captures' time, they are as soon read from the beginning."""
    told = tables.table("captures")
    first, last = _nanoseconds(told["first_time"], least=True), _nanoseconds(told["last_time"], least=False)
    if span is None or first is None or last is None or 2 * (span.until - span.since) > last - first:
        return None
    return span


def _nanoseconds(times: pa.ChunkedArray, *, least: bool) -> int | None:
    time = (pc.min if least else pc.max)(times).cast(pa.int64()).as_py()
    return None if time is None else int(time) * _MICROSECOND


def _naming(tables: Folder, calls: pa.Table) -> Iterator[Span]:
    """When each of their topics was named: where other messages say ids, these say both."""
    wanted = {topic for topics in calls["topics"].to_pylist() for topic in topics or ()}
    if not wanted or len(wanted) > _MOST_NAMES:
        return
    telling = ds.scalar(False)
    for key, version in _telling(load_catalog()):
        telling |= (ds.field("api_key") == key) & (ds.field("api_version") >= version)
    right = telling & (ds.field("status") == "answered")
    for batch in tables.dataset("api_calls").to_batches(columns=["topics", *_TIMES], filter=right):
        for row, topics in enumerate(batch["topics"].to_pylist()):
            if wanted.intersection(topics or ()):
                wanted.difference_update(topics)
                if span := _span_of(pa.Table.from_batches([batch.slice(row, 1)])):
                    yield span
                if not wanted:
                    return


def _telling(catalog: Catalog) -> Iterator[tuple[int, int]]:
    """APIs that tell the name of a topic beside its id, and from which version on."""
    for key in catalog.apis:
        for way in (REQUEST, RESPONSE):
            message = catalog.message(key, way)
            versions = [*_both(message.fields)] if message else []
            if versions:
                yield key, min(versions)


def _both(fields: Sequence[Field]) -> Iterator[int]:
    ids = [field.versions for field in fields if field.meaning is Meaning.TOPIC_ID]
    names = [field.versions for field in fields if field.meaning is Meaning.TOPIC]
    for one in ids:
        for other in names:
            if max(one.first, other.first) <= min(one.last, other.last):
                yield max(one.first, other.first)
    for each in fields:
        yield from _both(each.children)
