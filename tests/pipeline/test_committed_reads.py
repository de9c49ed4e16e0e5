"""Readers with read_committed wait for transactions: the broker's own clock says for how long."""

from __future__ import annotations

from collections import Counter

import pytest

import kwsniff
from tests.broker.requestlog import read
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"
WITHIN_US, WITHIN = 2_000, 0.15
SHORT_US = 20_000


@pytest.mark.parametrize("name", ["healthy_committed_reads", "healthy_long_transactions"])
def test_waits_for_a_transaction_are_as_long_as_the_broker_logged(name: str) -> None:
    """`remote` of its request log is the time that a fetch lies in purgatory."""
    tables = kwsniff.analyze(INCIDENTS / name / "broker.pcap", tables=("api_calls", "latencies"))
    witness = read(INCIDENTS / name / "witness.tsv")
    logged = {
        (row.client_port, row.correlation_id): row.remote_us for row in witness if row.remote_us is not None
    }
    calls = {row["call_id"]: row for row in tables.table("api_calls").to_pylist()}
    words, off = Counter[str](), []
    for row in tables.table("latencies").to_pylist():
        call = calls[row["call_id"]]
        place = call["client_port"], call["correlation_id"]
        if call["api_name"] != "Fetch" or call["isolation_level"] != 1 or place not in logged:
            continue
        words[row["wait"]] += 1
        remote = logged[place]
        waited = row["deliberate_wait_ns"] / 1000
        if row["wait"] == "transaction_possible" and waited < SHORT_US:
            continue  # nothing proves of such a short one that it waited
        if abs(waited - remote) > max(WITHIN_US, WITHIN * remote):
            off.append((row["call_id"], row["wait"], waited, remote))
    assert words["transaction"] >= 4, words
    if name == "healthy_committed_reads":
        # of two producers one begins a transaction before the other one ends that holds the reader back
        assert words["transaction_possible"]
    assert off == []
