"""A snapshot of a running capture: unfinished calls and connections, and the rows if it ended there."""

from dataclasses import dataclass
from typing import Any

from kwsniff.analyzers import resume_analyzer
from kwsniff.layout.catalog import Catalog
from kwsniff.live.batches import Batches, concat_batches
from kwsniff.sources.live_source import LiveSource
from kwsniff.tables.captures import CaptureName, account, capture_row, captures_batch
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.row_path import RowPath, public_rows, take_rows
from kwsniff.timelines.timelines import Timelines


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of unfinished calls and connections in a running capture."""

    state: bytes
    held: bytes
    """What the path of rows holds back."""
    timelines: tuple[Any, ...]
    silent_ns: int
    """Time since the last packet."""


def make_batches(
    snapshot: Snapshot, catalog: Catalog, delivered: tuple[str, ...], source: LiveSource
) -> Batches:
    """The rows of a snapshot. `delivered`: tables from the core."""
    analyzer = resume_analyzer(catalog, snapshot.state, delivered)
    facts = analyzer.close_capture()
    analyzer.finish()
    path = RowPath(catalog, TABLES)
    path.resume(snapshot.held)
    batches = path.build_all(take_rows(analyzer, delivered))
    timelines = Timelines(catalog)
    timelines.resume(snapshot.timelines)
    if noted := path.extract(batches):
        timelines.add(noted)
    for table, batch in batches.items():
        timelines.add_rows(table, batch)
    timelines.finish()
    row = capture_row(CaptureName(source.interface), facts | {"truncated": False})
    row["dropped_by_kernel"] = source.dropped
    if row["last_time"] is not None:  # no packets since: waiting calls have waited longer
        row["last_time"] += snapshot.silent_ns
    account(row, analyzer.accounting(0))
    settled = [{table: public_rows(table, rows)} for table, rows in timelines.drain(1)]
    return concat_batches([batches, *settled, {"captures": captures_batch([row])}])
