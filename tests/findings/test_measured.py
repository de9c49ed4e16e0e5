"""The page that says how often the cause is named: it is current, and counts what the recordings say."""

from __future__ import annotations

import pytest

from tests.findings.conftest import FindingsOf
from tests.findings.measured import HIDDEN, Judged, judge, page, recordings
from tests.house.tree import DOCS

pytestmark = pytest.mark.xdist_group("measured")  # what one process has judged the others would judge again


@pytest.fixture(scope="module")
def judged(findings_of: FindingsOf) -> list[Judged]:
    return [judge(each, findings_of(each.path)) for each in recordings()]


@pytest.mark.slow
def test_the_page_is_current(judged: list[Judged]) -> None:
    assert (DOCS / "accuracy.md").read_text("utf-8") == page(judged), (
        "python -m tests.findings.measured > docs/accuracy.md"
    )


@pytest.mark.slow
def test_the_cause_is_named_wherever_it_can_be_seen(judged: list[Judged]) -> None:
    missed = {
        (each.recording.name, each.recording.place)
        for each in judged
        if each.recording.cause and not each.is_right
    }
    assert missed == set(HIDDEN)


@pytest.mark.slow
def test_nothing_is_said_where_nothing_is_wrong(judged: list[Judged]) -> None:
    healthy = [each for each in judged if not each.recording.cause]
    assert len(healthy) >= 20
    assert [each.recording.name for each in healthy if each.others] == []


def test_every_recording_counts_once() -> None:
    names = [(each.name, each.place) for each in recordings()]
    assert len(names) == len(set(names)) >= 80
    assert set(HIDDEN) <= set(names)
