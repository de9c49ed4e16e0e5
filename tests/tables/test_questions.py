"""docs/questions.md: every command runs in a shell as it stands, and has the answer that the page shows."""

import tomllib
from pathlib import Path

import pytest

import kwsniff
from kwsniff.findings.sql import load_questions
from tests.house.tree import ROOT
from tests.tables.asked import PAGE, page, questions


@pytest.mark.slow
def test_questions_have_the_queries_and_answers_that_the_page_shows() -> None:
    """What the rows say is compared with brokers and scripts in tests/pipeline; here, with the page."""
    assert sorted(questions()) == sorted(load_questions()), "every question of the verb is on the page, once"
    assert PAGE.read_text("utf-8").count("```") == 6 * len(questions()), "every block of the page is of one"
    assert page() == PAGE.read_text("utf-8"), "made anew by: python -m tests.tables.asked"


def _fetched_again(name: str, out: Path) -> tuple[int, int]:
    """By the question, and how many more records the applications counted than were written."""
    folder = ROOT / "captures" / "incidents" / name
    report = tomllib.loads((folder / "about.toml").read_text("utf-8"))["report"]
    kwsniff.analyze(folder / "broker.pcap", output=out)
    found = kwsniff.sql(out, question="rebalances")
    return sum(found["fetched_again"].to_pylist()), report["consumed"] - report["produced"]


def test_records_that_a_group_reads_again_are_counted(tmp_path: Path) -> None:
    found, counted = _fetched_again("healthy_uncommitted", tmp_path / "out")
    assert found == counted == 24


def test_a_consumer_that_fetches_ahead_gets_more_again_than_its_application(tmp_path: Path) -> None:
    """max.poll.records=2: the application worked on two of the five records that came at once."""
    assert _fetched_again("poll_interval_java", tmp_path / "out") == (5, 2)
