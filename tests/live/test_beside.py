"""What `kwsniff live` writes equals `analyze` of a tcpdump recording made beside it, call by call."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.record.mock import MockCluster
from tests.record.tcpdump import recording

from .beside import differences
from .running import Live, needs_capture, ports_of, table, talk

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _capturing() -> None:
    needs_capture()


@pytest.mark.parametrize("name", ["rebalance", "codecs", "transaction"])
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump", "scapy"])
def test_tables_equal_those_of_the_recording(tool: str, name: str, tmp_path: Path) -> None:
    if tool == "scapy":
        pytest.importorskip("scapy")
    elif shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    beside = tmp_path / "beside.pcap"
    out = tmp_path / "out"
    with MockCluster(relay="refusing") as cluster:
        options = ["--tool", tool, "--port", ports_of(cluster), "--json", "-o", str(out), "--rotate", "500ms"]
        with Live(*options) as live:
            with recording(beside, cluster.ports, nanoseconds=True):
                talk(name, cluster)
                calls = live.await_all_calls(cluster)
            assert live.end() == 0
        ports = cluster.ports
    assert table(out, "api_calls").num_rows == calls > 10
    assert differences(out, beside, ports=ports) == {}
