"""Captures that other people made to torture readers: nothing raises, nothing changes unseen, and other
readers of the same bytes agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from kwsniff.errors import CaptureError
from tests.pipeline.differences import PROVENANCE, TSHARK, Difference
from tests.pipeline.foreign import SHARED, analyzed_foreign, foreign_files, frozen_results, summarized
from tests.pipeline.tshark import View, Way, distinct_bytes, tshark_view
from tests.short_run import some

FILES = foreign_files() if SHARED.is_dir() else []
CAPTURES = [name for name in FILES if not name.endswith(".hex")]
LINK_NAMES = {"Ethernet": "ethernet", "Raw IP": "raw", "Raw IPv4": "ipv4", "Raw IPv6": "ipv6",
                     "NULL/Loopback": "null", "Linux cooked-mode capture v1": "linux_sll",
                     "Linux cooked-mode capture v2": "linux_sll2"}  # fmt: skip


pytestmark = pytest.mark.xdist_group("foreign")  # what one process has read the others would read again

_SAMPLE = 40
"""Captures that a short run reads, of some 250."""


@dataclass(frozen=True, slots=True)
class Found:
    """What kwsniff makes of a capture, as far as it is compared here."""

    summary: dict[str, Any]
    is_refused: bool
    capture: dict[str, Any]
    connections: list[dict[str, Any]]
    num_calls: int


@lru_cache(None)
def found_in(name: str) -> Found:
    result = analyzed_foreign(name)
    if isinstance(result, CaptureError):
        return Found(summarized(result), True, {}, [], 0)
    (capture,) = result.captures.to_pylist()
    connections = result.connections.to_pylist()
    return Found(summarized(result), False, capture, connections, result.api_calls.num_rows)


def assert_differences(
    name: str, found: Mapping[str, tuple[Any, Any]], known: Mapping[str, Difference]
) -> None:
    """What differs is exactly what is known to, so that a reason that no longer holds is noticed too."""
    expected = known[name].what if name in known else frozenset()
    assert set(found) == expected, {key: value for key, value in found.items() if key not in expected}


def test_the_frozen_results_are_of_these_files(shared: Path) -> None:
    assert list(frozen_results()) == foreign_files(shared)
    assert {*TSHARK, *PROVENANCE} <= set(CAPTURES)


@pytest.mark.sample(_SAMPLE)
@pytest.mark.parametrize("name", FILES)
def test_results_are_as_they_were(name: str) -> None:
    """After a change that is meant: python -m tests.pipeline.foreign --update, and look at what it prints."""
    assert found_in(name).summary == frozen_results()[name]


def test_only_what_is_no_capture_is_refused(shared: Path, pytestconfig: pytest.Config) -> None:
    names = some(pytestconfig, FILES, _SAMPLE)
    refused = [name for name in names if found_in(name).is_refused]
    assert refused == [name for name in names if name.endswith(".hex")]


def test_no_call_is_invented_where_nobody_speaks_kafka(pytestconfig: pytest.Config) -> None:
    """None of the TCP collection's files holds Kafka: HTTP, TLS, SSH, MySQL, DNS and made-up bytes."""
    for name in some(pytestconfig, CAPTURES, _SAMPLE):
        if name.startswith("tcp/"):
            assert found_in(name).num_calls == 0, name
            assert "kafka" not in {row["protocol"] for row in found_in(name).connections}, name


def listed() -> dict[str, list[str]]:
    """The TCP collection's own list: file, bytes, type and link, packets, TCP, streams, payload, remarks."""
    rows = {}
    for line in (SHARED / "captures/tcp/PROVENANCE.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[1].isdigit():
            rows[f"tcp/{cells[0]}"] = cells
    return rows


def in_list(name: str, cells: list[str]) -> dict[str, tuple[Any, Any]]:
    """What the list says, beside what kwsniff says."""
    capture, connections = found_in(name).capture, found_in(name).connections
    lost = re.search(r"missing_bytes:(\d+)", cells[7])
    missing = sum(row["client_missing_bytes"] + row["broker_missing_bytes"] for row in connections)
    pairs: dict[str, tuple[Any, Any]] = {
        "packets": (int(cells[3]), capture["packets"]),
        "tcp": (int(cells[4]), capture["tcp_packets"]),
        "streams": (int(cells[5]), len(connections)),
        "payload": (int(cells[6]), capture["tcp_payload_bytes"]),
        "missing": (int(lost[1]) if lost else 0, missing),
        "format": ("pcapng" in cells[2], capture["format"] == "pcapng"),
        "gzip": ("(gzip compressed)" in cells[2], capture["compression"] == "gzip"),
    }
    link = LINK_NAMES.get(cells[2].partition(", ")[2])
    if link and capture["packets"]:
        pairs["link"] = ([link], capture["link_types"])
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.sample(_SAMPLE)
@pytest.mark.skipif(not FILES, reason="reference material (../shared) is not beside this checkout")
@pytest.mark.parametrize("name", [name for name in CAPTURES if name.startswith("tcp/")])
def test_the_collection_says_the_same_of_its_files(name: str) -> None:
    cells = listed().get(name)
    if cells is None:
        pytest.skip("not in the list: it has notes of its own")
    if cells[2] == "?, ?":
        pytest.skip("the list has no facts: its reader did not know the link type")
    found = in_list(name, cells)
    if "tcp" in found and PROVENANCE.get(name, Difference(frozenset(), "")).what == {"tcp"}:
        found = {"tcp": found["tcp"]}  # what is in those packets cannot agree either
    assert_differences(name, found, PROVENANCE)


def bytes_of(connections: list[dict[str, Any]]) -> dict[Way, int]:
    """Distinct payload bytes captured of each direction, over all connections between the same endpoints."""
    found: Counter[Way] = Counter()
    for row in connections:
        client = row["client_address"], row["client_port"]
        broker = row["broker_address"], row["broker_port"]
        found[*client, *broker] += row["client_bytes"]
        found[*broker, *client] += row["broker_bytes"]
    return {way: num for way, num in found.items() if num}


def in_view(name: str, view: View) -> dict[str, tuple[Any, Any]]:
    """What tshark says, beside what kwsniff says."""
    capture, connections = found_in(name).capture, found_in(name).connections
    ours = tuple(
        None if moment is None else int(moment.timestamp()) * 10**6 + moment.microsecond
        for moment in (capture["first_time"], capture["last_time"])
    )
    times = (min(view.times_ns) // 1000, max(view.times_ns) // 1000) if view.times_ns else (None, None)
    pairs: dict[str, tuple[Any, Any]] = {
        "packets": (view.packets, capture["packets"]),
        "tcp_packets": (view.tcp_packets, capture["tcp_packets"]),
        "fragments": (view.fragments, capture["skipped_fragment"]),
        "connections": (len(view.streams), len(connections)),
        "bytes": (
            {way: distinct_bytes(pieces) for way, pieces in view.pieces.items()},
            bytes_of(connections),
        ),
        "times": (times, ours),
    }
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_tshark_finds_the_same(name: str) -> None:
    assert_differences(name, in_view(name, tshark_view(SHARED / "captures" / name)), TSHARK)


def test_sequence_numbers_that_wrap_change_nothing(shared: Path) -> None:
    """One stream is there twice: as it was, and with its numbers shifted to the end of their range."""
    plain, wrapped = (
        summarized(analyzed_foreign(f"tcp/seladb+PcapPlusPlus/one_tcp_stream{which}.pcap", shared))
        for which in ("", "_max_seq")
    )
    assert plain == wrapped
