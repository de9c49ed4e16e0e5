"""The page that says how often the cause is named: it is current, and counts what the recordings say."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.findings.measured import HIDDEN, Judged, find_once, judge, page, recordings
from tests.house.tree import DOCS

pytestmark = pytest.mark.xdist_group("measured")  # what one process has judged the others would judge again


@lru_cache(None)
def _judged() -> tuple[Judged, ...]:
    return tuple(judge(each, find_once(each.path)) for each in recordings())


@pytest.mark.slow
def test_the_page_is_current() -> None:
    assert (DOCS / "accuracy.md").read_text("utf-8") == page(_judged()), (
        "python -m tests.findings.measured > docs/accuracy.md"
    )


@pytest.mark.slow
def test_the_cause_is_named_wherever_it_can_be_seen() -> None:
    missed = {
        (each.recording.name, each.recording.place)
        for each in _judged()
        if each.recording.cause and not each.is_right
    }
    assert missed == set(HIDDEN)


@pytest.mark.slow
def test_nothing_is_said_where_nothing_is_wrong() -> None:
    healthy = [each for each in _judged() if not each.recording.cause]
    assert len(healthy) >= 20
    assert [each.recording.name for each in healthy if each.others] == []


def test_every_recording_counts_once() -> None:
    names = [(each.name, each.place) for each in recordings()]
    assert len(names) == len(set(names)) >= 80
    assert set(HIDDEN) <= set(names)
