"""docs/questions.md: every command runs in a shell as it stands, and has the answer that the page shows."""

import pytest

from kwsniff.findings.sql import load_questions
from tests.tables.asked import PAGE, page, questions


@pytest.mark.slow
def test_questions_have_the_queries_and_answers_that_the_page_shows() -> None:
    """What the rows say is compared with brokers and scripts in tests/pipeline; here, with the page."""
    assert sorted(questions()) == sorted(load_questions()), "every question of the verb is on the page, once"
    assert PAGE.read_text("utf-8").count("```") == 6 * len(questions()), "every block of the page is of one"
    assert page() == PAGE.read_text("utf-8"), "made anew by: python -m tests.tables.asked"
