"""docs/findings.md says what the rules say."""

from __future__ import annotations

from kwsniff.findings.docs import findings_page

from .tree import DOCS


def test_the_page_of_findings_is_up_to_date() -> None:
    page = (DOCS / "findings.md").read_text("utf-8")
    assert page == findings_page(), "run: python -m kwsniff.findings.docs > docs/findings.md"
