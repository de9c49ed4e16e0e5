"""Recordings of programs by hand: three places at once, and `ss -ti` beside stalls."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import combinations, pairwise
from statistics import median
from typing import Any

import pytest

import kwsniff
from tests.house.tree import ROOT
from tests.pipeline.places import MILLISECOND, lost_between, true_hops

FOLDER = ROOT / "tests" / "data" / "sockets"
THREE = {name: FOLDER / "three_places" / f"{name}.pcap" for name in ("client", "between", "broker")}
ONE_WAY_NS = {("client", "between"): 10 * MILLISECOND, ("between", "broker"): 3 * MILLISECOND}
"""What the relays hold packets back (tests/broker/network/sockets.py)."""
TOLERANCE = 0.1
"""Of the time that the kernel says. It counts in ticks of 4 ms, and from when data waits; a stall lies
between two packets that are 5 ms or more apart."""


def apart(one: str, other: str) -> int:
    """One way between two places."""
    names = [*THREE]
    legs = names[names.index(one) : names.index(other) + 1]
    return sum(ONE_WAY_NS[leg] for leg in pairwise(legs))


def check_hops(done: kwsniff.Analysis, one: str, other: str) -> None:
    rows = [row for row in done.hops.to_pylist() if (row["from_place"], row["to_place"]) == (one, other)]
    assert len(rows) == 12
    for name in ("request_ns", "response_ns"):
        assert abs(median(row[name] for row in rows) - apart(one, other)) < MILLISECOND
        assert min(row[name] for row in rows) > apart(one, other) - MILLISECOND // 10
    assert sum(row["lost_packets"] for row in rows) == lost_between(THREE[one], THREE[other])


def test_three_places_tell_both_legs() -> None:
    done = kwsniff.analyze([*THREE.values()])
    for leg in ONE_WAY_NS:
        check_hops(done, *leg)
    assert {each["place"]: each["side"] for each in done.summary["places"]} == {
        "client": "client", "between": "between", "broker": "broker"
    }  # fmt: skip
    assert lost_between(THREE["client"], THREE["between"]) == 0
    assert lost_between(THREE["between"], THREE["broker"]) == 3
    assert sum(row["calls"] for row in done.summary["calls"]) == 12


@pytest.mark.parametrize(("one", "other"), [*combinations(THREE, 2)])
def test_any_two_of_three_places_tell_what_lies_between(one: str, other: str) -> None:
    """Times are those between the packets of the files."""
    done = kwsniff.analyze([THREE[other], THREE[one]])
    check_hops(done, one, other)
    for row, up, down in true_hops(done, THREE[one], THREE[other]):
        assert abs(row["request_ns"] - up) <= MILLISECOND
        assert abs(row["response_ns"] - down) <= MILLISECOND


def test_the_kernel_waited_for_the_window_as_long_as_stalls_say() -> None:
    folder = FOLDER / "windows"
    with (folder / "ss.tsv").open() as lines:
        told = {int(row["client_port"]): row for row in csv.DictReader(lines, delimiter="\t")}
    done = kwsniff.analyze(folder / "client.pcap")
    ports = {row["connection_id"]: row["client_port"] for row in done.connections.to_pylist()}
    waited: Counter[int] = Counter()
    for row in done.stalls.to_pylist():
        if row["cause"] in ("receiver_window", "zero_window") and row["direction"] == "to_broker":
            waited[ports[row["connection_id"]]] += row["duration_ns"]
    assert set(waited) == set(told)
    assert len(told) == 2
    for port, row in told.items():
        known = int(row["rwnd_limited_ms"]) * MILLISECOND
        assert abs(waited[port] - known) <= TOLERANCE * known
        assert int(row["sndbuf_limited_ms"]) == 0


def test_other_causes_took_little_of_that_time() -> None:
    rows: list[dict[str, Any]] = kwsniff.analyze(FOLDER / "windows" / "client.pcap").stalls.to_pylist()
    causes: Counter[str] = Counter()
    for row in rows:
        causes[row["cause"]] += row["duration_ns"]
    assert causes["zero_window"] > causes["receiver_window"] > 0
    assert causes["zero_window"] + causes["receiver_window"] > 0.95 * causes.total()
