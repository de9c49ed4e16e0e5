"""Rows of the table captures: what was cut off, and what could not be read."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.sources.files import Unread
from kwsniff.tables.captures import CaptureName, capture_row, unread_anomalies, unread_row

REASONS = ("not_ip", "not_tcp", "fragment", "malformed", "unknown_link_type", "other_time")
FACTS: dict[str, Any] = {
    **{f"packets_{why}": number for number, why in enumerate(REASONS)},
    "packets_tcp": 70,
    "snaplen": 0,
    "truncated": False,
}


@pytest.mark.parametrize("facts", [False, True])
@pytest.mark.parametrize("source", [False, True])
def test_a_capture_is_cut_off_by_itself_or_by_its_compression(facts: bool, source: bool) -> None:
    row = capture_row(CaptureName("c.pcap.gz", "gzip", source), {**FACTS, "truncated": facts})
    assert row["truncated"] == (facts or source)
    assert row["compression"] == "gzip"


def test_each_reason_has_its_packets() -> None:
    row = capture_row(CaptureName("c.pcap", note="a note"), FACTS)
    assert [row[f"skipped_{why}"] for why in REASONS] == [0, 1, 2, 3, 4, 5]
    assert (row["tcp_packets"], row["snaplen"], row["notes"]) == (70, None, ["a note"])
    assert capture_row(CaptureName("c.pcap"), {**FACTS, "snaplen": 96})["snaplen"] == 96


def test_a_file_that_could_not_be_read_is_damaged_where_it_is_there() -> None:
    there, gone = Unread("there.pcap", "why", 123), Unread("gone.pcap", "why", None)
    assert [(row["damaged"], row["bytes"], row["notes"]) for row in map(unread_row, (there, gone))] == [
        (True, 123, ["why"]),
        (False, 0, ["why"]),
    ]
    assert [each["capture"] for each in unread_anomalies([there, gone])] == ["there.pcap"]
