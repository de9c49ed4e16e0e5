"""Two network namespaces and a cable that loses packets: nothing that arrived is missing from the tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.tcpdump import recording

from .beside import differences
from .lossy import BROKER, Broker, LossyLink, why_not
from .running import PATIENCE_S, ROOT, Live, needs_capture, table

pytestmark = [pytest.mark.live, pytest.mark.slow]
RECORDS = 150


@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_a_lossy_link_costs_no_call(tool: str, tmp_path: Path) -> None:
    needs_capture()
    reason = why_not()
    if reason:
        pytest.skip(reason)
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    beside, out = tmp_path / "beside.pcap", tmp_path / "out"
    with LossyLink(loss=0.03, seed=7) as link, Broker(link.broker) as broker:
        ports = ",".join(map(str, broker.ports))
        options = ["--tool", tool, "--port", ports, "--json", "-o", str(out)]
        with Live(*options, interface=link.broker_interface, before=link.broker) as live:
            interface = link.broker_interface
            with recording(beside, broker.ports, nanoseconds=True, interface=interface, before=link.broker):
                servers = f"{BROKER}:{broker.ports[0]}"
                client = [sys.executable, "-m", "tests.live.lossy", "client", servers, str(RECORDS)]
                subprocess.run([*link.client, *client], cwd=ROOT, check=True, timeout=2 * PATIENCE_S)
                calls = live.await_all(broker.requests)
            assert live.end() == 0
        ports_used = broker.ports
        assert link.lost > 10
    rows = table(out, "api_calls").to_pandas()
    assert len(rows) == calls
    produced = rows[rows.api_name == "Produce"]
    assert produced.record_count.sum() >= RECORDS
    assert set(produced.status) == {"answered"}
    connections = table(out, "connections").to_pandas()
    assert (connections.client_retransmitted_bytes + connections.broker_retransmitted_bytes).sum() > 0
    assert differences(out, beside, ports=ports_used) == {}
