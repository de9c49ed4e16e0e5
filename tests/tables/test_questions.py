"""docs/questions.md: every command runs in a shell as it stands, and has the answer that the page shows."""

import tomllib
from pathlib import Path

import pytest

import kwsniff
from kwsniff.findings.sql import load_questions
from tests.house.tree import ROOT
from tests.tables.asked import LONGEST_QUERY, PAGE, page, questions


@pytest.mark.slow
def test_questions_have_the_queries_and_answers_that_the_page_shows() -> None:
    """What the rows say is compared with brokers and scripts in tests/pipeline; here, with the page."""
    assert sorted(questions()) == sorted(load_questions()), "every question of the verb is on the page, once"
    long = sum(each.query.count("\n") > LONGEST_QUERY for each in load_questions().values())
    blocks = 3 * len(questions()) - long
    assert PAGE.read_text("utf-8").count("```") == 2 * blocks, "every block of the page is of one"
    assert page() == PAGE.read_text("utf-8"), "made anew by: python -m tests.tables.asked"


def _fetched_again(name: str, out: Path) -> tuple[int, int]:
    """By the question, and how many more records the applications counted than were written."""
    folder = ROOT / "captures" / "incidents" / name
    report = tomllib.loads((folder / "about.toml").read_text("utf-8"))["report"]
    kwsniff.analyze(folder / "broker.pcap", output=out)
    found = kwsniff.sql(out, question="rebalances")
    return sum(each or 0 for each in found["fetched_again"].to_pylist()), report["consumed"] - report[
        "produced"
    ]


def test_records_that_a_group_reads_again_are_counted(tmp_path: Path) -> None:
    found, counted = _fetched_again("healthy_uncommitted", tmp_path / "out")
    assert found == counted == 24


def test_a_consumer_that_fetches_ahead_gets_more_again_than_its_application(tmp_path: Path) -> None:
    """max.poll.records=2: the application worked on two of the five records that came at once."""
    assert _fetched_again("poll_interval_java", tmp_path / "out") == (5, 2)


def test_users_of_a_topic_have_the_records_that_the_applications_counted(tmp_path: Path) -> None:
    folder = ROOT / "captures" / "incidents" / "healthy_uncommitted"
    report = tomllib.loads((folder / "about.toml").read_text("utf-8"))["report"]
    kwsniff.analyze(folder / "broker.pcap", output=tmp_path / "out")
    rows = [
        row
        for row in kwsniff.sql(tmp_path / "out", question="topic_users").to_pylist()
        if row["topic"] == "orders"
    ]
    for does, counted in (("writes", report["produced"]), ("reads", report["consumed"])):
        assert sum(row["records"] for row in rows if row["does"] == does) == counted
    (writer,) = (row for row in rows if row["does"] == "writes")
    times = kwsniff.sql(
        tmp_path / "out", "select min(time) a, max(time) b from partitions where topic = 'orders' and "
        "api_name in ('Produce', 'Fetch')",
    ).to_pylist()  # fmt: skip
    took = (times[0]["b"] - times[0]["a"]).total_seconds()
    assert writer["records/s"] == pytest.approx(report["produced"] / took, abs=0.06)


def test_users_of_a_topic_have_its_leaders_in_the_order_of_their_terms(tmp_path: Path) -> None:
    """The leader moves from the first broker to another one, and back."""
    folder = ROOT / "captures" / "incidents" / "healthy_leader_moves"
    kwsniff.analyze(folder / "broker.pcap", output=tmp_path / "out")
    rows = kwsniff.sql(tmp_path / "out", question="topic_users").to_pylist()
    moved = kwsniff.sql(
        tmp_path / "out",
        "select b.host || ':' || b.port as address from leaders l join brokers b on b.node_id = l.leader "
        "where l.topic = 'orders' and l.partition = 0 order by l.first_time",
    )["address"].to_pylist()
    assert len(moved) == 2
    assert {row["leaders"] for row in rows if row["topic"] == "orders"} == {", ".join(moved)}
