"""Situations of public reports: the cause is named, its owner is right, no one else is blamed."""

import pytest

import kwsniff
from tests.findings.field import Truth, read_truths

OPEN = {
    "accept_and_close": "no rule finds it yet",
    "client_resets_in_response": "no rule finds it yet",
    "l_stuck_consumer": "no rule finds it yet",
    "lb_backend_down_at_client": "no rule finds it yet",
    "middlebox_rst_3.9.2": "no rule finds it yet",
    "nagle_40ms": "no rule finds it yet",
    "poison_record": "no rule finds it yet",
    "refused_9090_no_kafka": "no rule finds it yet",
    "syn_lost": "no rule finds it yet",
    "syn_never_answered": "no rule finds it yet",
}
"""Captures of which the truth is not found yet, and why."""


@pytest.mark.sample(12)
@pytest.mark.parametrize("truth", read_truths(), ids=lambda truth: truth.capture)
def test_the_cause_is_named_and_no_one_else_is_blamed(truth: Truth, request: pytest.FixtureRequest) -> None:
    if reason := OPEN.get(truth.capture):
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    assert truth.faults(kwsniff.analyze(truth.path).findings.to_pylist()) == []
