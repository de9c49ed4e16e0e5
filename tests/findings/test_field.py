"""Situations of public reports, recorded again: the cause is named, the right one owns it, no one else is blamed."""

import pytest

import kwsniff
from tests.findings.field import Truth, read_truths

OPEN = {
    name: "open"
    for name in (
        "accept_and_close client_resets_in_response client_sends_garbage eos_healthy "
        "follower_slow_clients_only h_mm2 h_scale_up http_server_answers kafka_client_to_zookeeper "
        "l_stuck_consumer lb_backend_down_at_client middlebox_rst_3.9.2 mtls_no_client_cert_12 "
        "mtu_blackhole_at_client nagle_40ms out_of_order poison_record produce_v1_answered_v0 "
        "refused_9090_no_kafka standalone_in_group syn_lost syn_never_answered thin_link tls_cert_expired "
        "tls_leaves_midstream version_above_offered"
    ).split()
}
"""Captures of which the truth is not found yet, and why."""


@pytest.mark.parametrize("truth", read_truths(), ids=lambda truth: truth.capture)
def test_the_cause_is_named_and_no_one_else_is_blamed(truth: Truth, request: pytest.FixtureRequest) -> None:
    if reason := OPEN.get(truth.capture):
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    assert truth.faults(kwsniff.analyze(truth.path).findings.to_pylist()) == []
