"""Fresh traffic on loopback: a real client, recorded while the test runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.pipeline.compare import decoded


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rebalance", "no_acks"])
def test_fresh_recording_holds_the_calls_the_broker_counted(name: str, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    from tests.record.__main__ import record
    from tests.record.talks import TALKS
    from tests.record.tcpdump import why_not
    from tests.traffic.wire import API_NAMES

    reason = why_not()
    if reason:
        pytest.skip(reason)
    path = tmp_path / "live.pcap"
    report, logged, ports, _ = record(TALKS[name], path)
    tables = decoded(path)
    assert Counter(row["api_name"] for row in tables["api_calls"]) == {
        API_NAMES[key]: count for key, count in logged.items()
    }
    assert {row["broker_port"] for row in tables["api_calls"]} == set(ports)
    delivered = [
        row["record_count"]
        for row in tables["api_calls"]
        if row["api_name"] == "Produce" and row["error_code"] in (0, None)
    ]
    assert sum(delivered) == report.produced
