"""Brokers at advertised addresses to which nobody connects: who cannot reach them, and who need not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.figures import Figures
from tests.findings.opened import CLIENT, SECOND, call, judge, kafka
from tests.findings.scripted import table_of

BOOTSTRAP = "10.0.0.2"
SIX = [1, 1.1, 1.3, 1.7, 2.5, 4.1]
"""As a client asks that waits longer each time."""
EVEN = [1 + number * 0.8 for number in range(6)]


def _tables(hosts: Sequence[str], asked: Sequence[float], works_on: Sequence[int] = ()) -> dict[str, Any]:
    """Broker N leads orders-N at hosts[N]; a client asks at these seconds, and writes to these partitions."""
    about = {"connection_id": 1, "error_code": 0, "topics": ["orders"]}
    calls = [call(n, at, at + 0.01, api_name="Metadata", **about) for n, at in enumerate(asked, 1)]
    parts = []
    for number, partition in enumerate(works_on, 100):
        calls.append(call(number, 3, 3.01, connection_id=1, api_name="Produce", error_code=0))
        parts.append({**calls[-1], "topic": "orders", "partition": partition, "time": 3 * SECOND})
    leaders = [
        {"topic": "orders", "partition": n, "leader": n, "client_id": "first"} for n in range(len(hosts))
    ]
    brokers = [
        {"cluster_id": "k", "node_id": n, "host": host, "port": 9092, "first_call_id": 1}
        for n, host in enumerate(hosts)
    ]
    return {"api_calls": calls, "partitions": parts, "leaders": leaders, "brokers": brokers}


def _found(hosts: Sequence[str], asked: Sequence[float] = SIX, **more: Any) -> list[Finding]:
    own = {name: more.pop(name) for name in ("broker_address", "client_address") if name in more}
    tables = _tables(hosts, asked, **more)
    tables["api_calls"] = [{**row, **own} for row in tables["api_calls"]]
    return judge("advertised_unreachable", [kafka(1, 0, 50, **own)], **tables)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_a_loopback_address_leads_clients_of_other_hosts_nowhere(host: str) -> None:
    (finding,) = _found([host], [1, 1.5, 2])
    assert (finding.subject, finding.blames, finding.confidence) == (
        f"{host}:9092",
        "configuration",
        "certain",
    )
    assert "shop (10.0.0.1) cannot reach" in finding.text
    assert finding.frames == [1, 2, 3]


@pytest.mark.parametrize(
    "more",
    [
        {"works_on": [0]},  # its calls come in, by a port that is mapped
        {"client_address": BOOTSTRAP},  # both are on one host
        {"broker_address": "127.0.0.1"},
        {"asked": [1, 1.5]},
    ],
    ids=["it works", "one host", "through a tunnel", "twice"],
)
def test_a_loopback_address_may_be_right(more: dict[str, Any]) -> None:
    assert _found(["localhost"], **{"asked": [1, 1.5, 2], **more}) == []


def test_a_name_that_a_client_does_not_resolve_is_named() -> None:
    (finding,) = _found(["kafka"])
    assert (finding.subject, finding.confidence, finding.value) == ("kafka:9092", "likely", 6)


def test_one_broker_of_two_is_named_where_a_client_works_with_the_other() -> None:
    assert [each.subject for each in _found([BOOTSTRAP, "kafka-2"], works_on=[0, 0])] == ["kafka-2:9092"]


@pytest.mark.parametrize(
    ("hosts", "asked", "works_on"),
    [
        ([BOOTSTRAP, "kafka-2"], SIX, ()),
        ([BOOTSTRAP, "kafka-2"], SIX, (0, 1)),
        ([BOOTSTRAP, "kafka-2"], [1 + 6 * number for number in range(6)], (0,)),
        ([BOOTSTRAP, "kafka-2"], SIX[:4], (0,)),
        ([BOOTSTRAP, "kafka-2"], [1, 1.1, 1.2, 1.3, 1.4], (0,)),
        ([BOOTSTRAP], SIX, (0,)),
        ([BOOTSTRAP, "10.0.0.3"], SIX, (0,)),
    ],
    ids=[
        "a monitor",
        "by another name",
        "seldom",
        "four times",
        "at the start",
        "nobody else leads",
        "an address",
    ],
)
def test_who_asks_for_another_reason_is_no_proof(
    hosts: Sequence[str], asked: Sequence[float], works_on: Sequence[int]
) -> None:
    assert _found(hosts, asked, works_on=works_on) == []


@pytest.mark.parametrize(("searches", "joins", "named"), [(5, 0, ["kafka-2:9092"]), (4, 0, []), (5, 1, [])])
def test_who_looks_for_a_coordinator_in_vain_is_no_monitor(
    searches: int, joins: int, named: list[str]
) -> None:
    tables = _tables([BOOTSTRAP, "kafka-2"], SIX)
    for number in range(searches + joins):
        api = "FindCoordinator" if number < searches else "OffsetFetch"
        tables["api_calls"].append(
            call(200 + number, 2 + number, 2.1 + number, connection_id=1, api_name=api)
        )
    found = judge("advertised_unreachable", [kafka(1, 0, 50)], **tables)
    assert [each.subject for each in found] == named


def test_who_only_asks_at_even_intervals_is_an_info() -> None:
    assert [each.severity for each in _found(["kafka"], EVEN)] == ["info"]
    assert [each.severity for each in _found(["kafka"], SIX)] == ["problem"]


def test_a_second_connection_is_the_one_to_the_address() -> None:
    connections = [kafka(1, 0, 50), kafka(2, 0.5, 50)]
    assert judge("advertised_unreachable", connections, **_tables(["kafka"], SIX)) == []


def test_an_error_is_a_reason_to_ask() -> None:
    tables = _tables(["kafka"], SIX)
    error = {**tables["api_calls"][0], "error_code": 5, "error_name": "LEADER_NOT_AVAILABLE"}
    assert judge("advertised_unreachable", [kafka(1, 0, 50)], error_codes=[error], **tables) == []


@pytest.mark.parametrize(("host", "unvisited"), [("kafka", 1), (BOOTSTRAP, 0)])
def test_figures_count_brokers_to_which_nobody_connected(host: str, unvisited: int) -> None:
    figures = Figures()
    rows = {**_tables([host], SIX), "connections": [kafka(1, 0, 50, client_address=CLIENT)]}
    for name in ("api_calls", "brokers", "connections"):
        for batch in table_of(name, rows[name]).to_batches():
            figures.add(name, batch)
    assert figures.as_dict()["unvisited"] == unvisited
