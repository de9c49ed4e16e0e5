"""Packets of calls as display filters: by hand from the rows."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.display_filters import DisplayFilter, filters_of, frames_of
from kwsniff.findings.evaluate import conclude

from .test_weights import PLAIN


@pytest.mark.parametrize(
    ("numbers", "spans"),
    [
        ((5, 5, 9, 9), [(5, 5), (9, 9)]),
        ((5, 7, 9, 12), [(5, 7), (9, 12)]),
        ((5, 5, 5, 5), [(5, 5), (5, 5)]),  # a response in the packet of its request
        ((5, 7, None, None), [(5, 7)]),
        ((None, None, 9, 12), [(None, None), (9, 12)]),
        ((5, 3, 9, 9), [(5, 5)]),  # ends in the next capture, and so is the response there
        ((5, 7, 2, 4), [(5, 7)]),  # the response is in the next capture
        ((5, 7, 9, 3), [(5, 7), (9, 9)]),  # the response ends in the next capture
        ((5, None, 9, None), [(5, None), (9, 9)]),
    ],
)
def test_packets_of_a_call(numbers: tuple[int | None, ...], spans: list[tuple[int | None, ...]]) -> None:
    names = ("request_frame", "request_end_frame", "response_frame", "response_end_frame")
    assert frames_of(dict(zip(names, numbers, strict=True))) == spans


def finding(**row: Any) -> Any:
    given = {"subject": "s", "first_time": None, "last_time": None, "calls": 0, **row}
    (found,) = conclude([(PLAIN, given)], 0)
    return found


def test_every_call_that_proves_a_finding_has_its_filters() -> None:
    """One for each run that has a call of that number."""
    known = {
        1: [
            DisplayFilter(1, "a.pcap", "frame.number in {5}"),
            DisplayFilter(1, "b.pcap", "frame.number in {8}"),
        ],
        3: [DisplayFilter(3, "a.pcap", "frame.number in {9}")],
        4: [DisplayFilter(4, "a.pcap", "frame.number in {10}")],
    }
    found = filters_of(finding(call_ids=[3, 1, 2]), known, ["a.pcap", "b.pcap"])
    assert [(each["call_id"], each["capture"], each["filter"]) for each in found] == [
        (3, "a.pcap", "frame.number in {9}"),
        (1, "a.pcap", "frame.number in {5}"),
        (1, "b.pcap", "frame.number in {8}"),
    ]


@pytest.mark.parametrize(("captures", "capture"), [(["a.pcap"], "a.pcap"), (["a.pcap", "b.pcap"], None)])
def test_packets_without_a_call_are_of_the_only_capture(captures: list[str], capture: str | None) -> None:
    (found,) = filters_of(finding(frames=[7, 3]), {}, captures)
    assert found == {"call_id": None, "capture": capture, "filter": "frame.number in {3, 7}"}
    assert filters_of(finding(), {}, captures) == []
