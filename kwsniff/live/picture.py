"""What is unfinished in the middle of a capture, and the rows that there would be if it ended there."""

from dataclasses import dataclass
from typing import Any

from kwsniff.analysis.analyze import analyzer_arguments, early_access
from kwsniff.core.analyzer import Analyzer
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
    """What is unfinished in the middle of a capture."""

    state: bytes
    timelines: tuple[Any, ...]
    silent_ns: int
    """How long nothing had come."""


@dataclass(slots=True)
class CaptureName:
    """What kwsniff/tables/captures.py wants to know of a source."""

    name: str
    compression: str | None = None
    truncated: bool = False
    note: str | None = None


def developed(picture: Picture, catalog: Catalog, delivered: tuple[str, ...], source: LiveSource) -> Batches:
    """The rows of a picture. `delivered`: tables that the core gives."""
    analyzer = Analyzer.resume(
        *analyzer_arguments(catalog),
        picture.state,
        compile_early=early_access(catalog),
        tables=delivered,
    )
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
    if row["last_time"] is not None:  # silence goes on: what waits, waits longer
        row["last_time"] += picture.silent_ns
    account(row, analyzer.accounting(0))
    parts = {table: [batch] for table, batch in batches.items()}
    for table, batch in timelines.take(1):
        parts.setdefault(table, []).append(without_topics(batch) if table == HELD else batch)
    parts["captures"] = [captures_batch([row])]
    return {table: one_batch(each) for table, each in parts.items()}
