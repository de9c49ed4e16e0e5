"""Record batches of a request wait for its call, also across a saved state."""

from __future__ import annotations

from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.row_path import RowPath
from tests.timelines.test_servers import row

CATALOG = load_catalog("")


def test_what_is_held_back_survives_a_saved_state() -> None:
    records = row("record_batches", call_id=7, connection_id=1, api_key=0, topic="orders", partition=0)
    first = RowPath(CATALOG, TABLES)
    assert first.state() == b""
    assert first.extract({"record_batches": records}) is None
    second = RowPath(CATALOG, TABLES)
    second.resume(first.state())
    assert second.state() == first.state() != b""


def test_a_path_that_holds_nothing_has_an_empty_state() -> None:
    path = RowPath(CATALOG, TABLES)
    path.resume(b"")
    assert path.state() == b""
