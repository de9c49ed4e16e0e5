"""Captures without a Kafka call: what is wrong is said all the same, and decides the exit status."""

from __future__ import annotations

import pytest

from tests.findings.test_why import _why
from tests.house.tree import ROOT

FIELD = ROOT / "captures" / "field"
SILENT = FIELD / "syn_never_answered.pcap"
REFUSED = FIELD / "refused_9090_no_kafka.pcap"


@pytest.mark.parametrize("options", [(), ("--port", "9092")])
def test_syns_that_nobody_answers_are_a_problem(options: tuple[str, ...]) -> None:
    """17 SYNs in 19 s, as tshark counts them."""
    done = _why(SILENT, *options)
    assert done.returncode == 1
    assert done.stdout.startswith("1 problem; the capture has no Kafka calls.")
    assert "10.77.0.1:9092 answered none of 17 SYNs of 10.77.0.2" in " ".join(done.stdout.split())
    assert f"({'certain' if options else 'likely'}) owner: network" in done.stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize(("options", "status"), [((), 0), (("--port", "9090"), 1)])
def test_a_port_that_is_refused_is_kafkas_where_the_user_says_so(
    options: tuple[str, ...], status: int
) -> None:
    done = _why(REFUSED, *options)
    assert done.returncode == status
    assert "10.1.0.9:9090 refused 2 connections of 10.1.0.5" in " ".join(done.stdout.split())
    assert ("PROBLEM connection_refused" in done.stdout) == bool(status)
    head = "1 problem; the capture has no Kafka calls" if status else "No Kafka calls found."
    assert done.stdout.startswith(head)
