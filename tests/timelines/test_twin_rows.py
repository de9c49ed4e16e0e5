"""What twins say of time and of copies, by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.duplicates.duplicate_connections import Twin, Twins, find_twins

from .test_fingerprints import SECOND, Connections, pair


def test_a_third_place_is_as_late_as_the_ways_together() -> None:
    one, other = pair(3, 77)
    third = {**other, "connection_id": 8, "client_address": "198.51.100.1"}
    twins = find_twins(
        Connections(
            [one, {**other, "first_time": 5 * SECOND + 200}, {**third, "first_time": 5 * SECOND + 550}]
        ),
        10,
    )
    assert twins.found == {4: Twin(3, 200), 8: Twin(3, 550)}


@pytest.mark.parametrize(("ends", "are_twins"), [("fin", False), ("reset", False), ("open", True)])
def test_streams_that_were_seen_to_their_end_are_equally_long(ends: str, are_twins: bool) -> None:
    """Not where one goes on: with the same messages it may be longer."""
    one, other = pair(3, 77, ending=ends, messages_hash=5)
    twins = find_twins(Connections([one, {**other, "client_bytes": 2}]), 10)
    assert bool(twins) == are_twins
    assert find_twins(Connections([one, other]), 10)


def test_copies_are_what_was_sent_again_but_for_what_was_lost_before() -> None:
    """Of the second one, where both are in one capture."""
    sent = {
        "client_retransmitted_bytes": 100,
        "broker_retransmitted_bytes": 50,
        "client_lost_before_bytes": 30,
        "broker_lost_before_bytes": 7,
    }
    one, other = pair(3, 77)
    assert find_twins(Connections([one, {**other, **sent}]), 10).repeated == {"a.pcap": 113}
    assert find_twins(Connections([one, {**other, **sent, "capture": "b.pcap"}]), 10).repeated == {}


def test_marks_are_the_connection_and_nanoseconds() -> None:
    schema = arrow_schema(TABLES["connections"])
    rows = [{"connection_id": number} for number in (3, 4, 8, 9)]
    batch = pa.Table.from_pylist(rows, schema=schema).to_batches()[0]
    marked = Twins(found={4: Twin(3, 250), 8: Twin(3, None), 9: Twin(3, 0)}).mark(batch)
    assert marked.schema == batch.schema
    assert marked["twin_of"].to_pylist() == [None, 3, 3, 3]
    assert marked["twin_delay_ns"].to_pylist() == [None, 250_000, None, 0]
