"""Captures other people made: API and version counts as their provenance list has them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.pipeline.compare import decoded
from tests.pipeline.witness import pdus


def listed(shared: Path) -> dict[str, tuple[int, Counter[tuple[int, int]], int, set[str]]]:
    """File -> broker port, requests by (key, version), responses, client ids."""
    rows = {}
    for line in (shared / "captures/kafka/PROVENANCE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and re.fullmatch(r"(\d+v\d+:\d+ ?)+", cells[7]):
            counts: Counter[tuple[int, int]] = Counter()
            for key, version, count in re.findall(r"(\d+)v(\d+):(\d+)", cells[7]):
                counts[int(key), int(version)] = int(count)
            clients = {part.rpartition(":")[0] for part in cells[9].split()} if cells[9] else set()
            rows[cells[0]] = (int(cells[6]), counts, int(cells[8]), clients)
    return rows


FILES = [
    "kafka-go/v1-v1.pcapng", "kafka-go/v1c-v1c.pcapng", "kafka-go/v2-v2.pcapng", "kafka-go/v2b-v1.pcapng",
    "kafka-go/v2bc-v1c.pcapng", "kafka-go/v2c-v2-v2c.pcapng", "deepflow/00-produce-v2.pcap",
    "deepflow/00-produce-v7-sw8.pcap", "deepflow/00-produce-v9.pcap", "deepflow/18-api-versions-v3.pcap",
    "deepflow/mixed-with-unsupported.pcap", "go-sniffer/kafka.pcap", "arkime/kafka.pcap",
]  # fmt: skip


def test_the_list_and_the_files_agree(shared: Path) -> None:
    assert sorted(listed(shared)) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_requests_by_api_and_version(name: str, shared: Path) -> None:
    port, counts, responses, clients = listed(shared)[name]
    tables = decoded(shared / "captures/kafka" / name)
    rows = [row for row in tables["api_calls"] if row["api_key"] is not None]
    assert Counter((row["api_key"], row["api_version"]) for row in rows) == counts
    assert sum(row["response_frame"] is not None for row in rows) == responses
    assert {row["client_id"] for row in rows if row["client_id"]} == clients
    assert {row["broker_port"] for row in rows} == {port}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("kafka-go")])
def test_tshark_sees_the_same_frames(name: str, shared: Path) -> None:
    path = shared / "captures/kafka" / name
    theirs = sorted(
        (pdu["frame"], pdu["correlation_id"], pdu["api_key"])
        for pdu in pdus(path, [9092])
        if pdu["to_broker"]
    )
    rows = decoded(path)["api_calls"]
    assert sorted((row["request_end_frame"], row["correlation_id"], row["api_key"]) for row in rows) == theirs
