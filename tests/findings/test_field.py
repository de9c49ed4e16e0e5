"""Situations of public reports: the cause is named, its owner is right, no one else is blamed."""

import pytest

from tests.findings.conftest import FindingsOf
from tests.findings.field import Truth, read_truths

OPEN: dict[str, str] = {}
"""Captures of which the truth is not found yet, and why."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("truth", read_truths(), ids=lambda truth: truth.capture)
def test_the_cause_is_named_and_no_one_else_is_blamed(
    truth: Truth, request: pytest.FixtureRequest, findings_of: FindingsOf
) -> None:
    if reason := OPEN.get(truth.capture):
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    assert truth.faults(findings_of(truth.path)) == []
