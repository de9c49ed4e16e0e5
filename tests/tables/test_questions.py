"""docs/questions.md: every command runs in a shell as it stands, and has the answer that the page shows."""

from tests.tables.asked import PAGE, page, questions


def test_questions_have_the_answers_that_the_page_shows() -> None:
    """What the rows say is compared with brokers and scripts in tests/pipeline; here, with the page."""
    assert len(questions()) >= 9
    assert PAGE.read_text("utf-8").count("```") == 4 * len(questions()), "every command of the page is one"
    assert page() == PAGE.read_text("utf-8"), "made anew by: python -m tests.tables.asked"
