"""A snapshot of a running capture: unfinished calls and connections, and the rows if it ended there."""

from dataclasses import dataclass
from typing import Any

from kwsniff.analyzers import resume_analyzer
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import Catalog
from kwsniff.live.batches import Batches, one_batch
from kwsniff.sources.live_source import LiveSource
from kwsniff.tables.build import Builder
from kwsniff.tables.captures import account, capture_row, captures_batch
from kwsniff.tables.schema import DETAILS
from kwsniff.timelines.held_rows import hold_back, without_topics
from kwsniff.timelines.timelines import HELD, OFFSETS_OF, Timelines, noted


@dataclass(frozen=True, slots=True)
class Picture:
    """A snapshot of unfinished calls and connections in a running capture."""

    state: bytes
    timelines: tuple[Any, ...]
    silent_ns: int
    """Time since the last packet."""


@dataclass(slots=True)
class CaptureName:
    """Facts on the source for kwsniff/tables/captures.py."""

    name: str
    compression: str | None = None
    truncated: bool = False
    note: str | None = None


def developed(picture: Picture, catalog: Catalog, delivered: tuple[str, ...], source: LiveSource) -> Batches:
    """The rows of a snapshot. `delivered`: tables from the core."""
    analyzer = resume_analyzer(catalog, picture.state, delivered)
    facts = analyzer.close_capture()
    analyzer.finish()
    builder = Builder(catalog, ENUMS)
    taken = {table: analyzer.take(table) for table in delivered if analyzer.rows(table)}
    batches = {table: builder.build(table, columns) for table, columns in taken.items()}
    timelines = Timelines(catalog)
    timelines.resume(picture.timelines)
    details = batches.pop(DETAILS, None)
    if "api_calls" in batches:
        calls, timed = batches["api_calls"], None
        if HELD in batches:
            batches[HELD], timed = hold_back(batches[HELD], calls, catalog)
        timelines.add(noted(calls, details, batches.get(OFFSETS_OF), catalog, timed))
    timelines.finish()
    row = capture_row(CaptureName(source.interface), facts | {"truncated": False})
    row["dropped_by_kernel"] = source.dropped
    if row["last_time"] is not None:  # no packets since: waiting calls have waited longer
        row["last_time"] += picture.silent_ns
    account(row, analyzer.accounting(0))
    parts = {table: [batch] for table, batch in batches.items()}
    for table, batch in timelines.take(1):
        parts.setdefault(table, []).append(without_topics(batch) if table == HELD else batch)
    parts["captures"] = [captures_batch([row])]
    return {table: one_batch(each) for table, each in parts.items()}
