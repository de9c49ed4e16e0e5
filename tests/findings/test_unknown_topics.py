"""Why a topic is unknown: it is in another cluster, or its creation was refused."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.scripted import find

SECOND = 10**6
CLIENT = {"client_id": "mixed", "client_address": "10.0.0.7"}
ONE = {"broker_address": "10.0.0.1", "broker_port": 9092}
TWO = {"broker_address": "10.0.0.2", "broker_port": 9092}


def _missed(number: int, second: int, **more: Any) -> dict[str, Any]:
    told = {"error_code": 3, "error_name": "UNKNOWN_TOPIC_OR_PARTITION", "topic": "orders"}
    asked = {**CLIENT, **TWO, "connection_id": 2, "call_id": number, "api_name": "Metadata"}
    return {**asked, **told, "response_time": second * SECOND, **more}


def _found(clusters: tuple[str | None, str | None], **known_by: Any) -> list[Finding]:
    """Broker 2 does not know the topic from second 1 to 6; a client of broker 1 works with it until 9."""
    known = {**CLIENT, "client_id": "shop", **ONE, "topic": "orders", "partition": 0, "leader": 1}
    known |= {"first_time": 0, "last_time": 9 * SECOND, **known_by}
    where = ((1, ONE, clusters[0]), (2, TWO, clusters[1]))
    tables = {
        "error_codes": [_missed(number, number) for number in range(1, 7)],
        "leaders": [known],
        "connections": [{**CLIENT, **at, "connection_id": number, "calls": 2} for number, at, _ in where],
        "servers": [
            {"address": at["broker_address"], "port": 9092, "cluster_id": cluster} for _, at, cluster in where
        ],
    }
    return find("unknown_topic", tables)


def test_a_topic_of_another_cluster_is_unknown_although_brokers_know_it() -> None:
    (found,) = _found(("one", "two"))
    assert (found.subject, found.blames, found.value) == ("orders", "configuration", 6)
    assert "10.0.0.2:9092 belongs to another cluster than 10.0.0.1:9092, which knows it" in found.text
    assert found.advice == "Name brokers of one cluster only in bootstrap.servers of mixed."


@pytest.mark.parametrize("clusters", [("one", "one"), (None, None), ("one", None)])
def test_a_topic_that_its_cluster_knows_afterwards_was_being_created(
    clusters: tuple[str | None, str | None],
) -> None:
    assert _found(clusters, first_time=7 * SECOND) == []


def test_a_client_of_one_cluster_only_was_led_to_no_other() -> None:
    (found,) = _found(("one", "two"), topic="parcels")
    assert (found.blames, "another cluster" in found.text) == ("client", False)


@pytest.mark.parametrize(("code", "is_named"), [(38, True), (36, False)])
def test_a_topic_whose_creation_was_refused_says_why(code: int, is_named: bool) -> None:
    """That the topic exists (36) is no reason why it does not."""
    refused = {"error_code": code, "error_name": "INVALID_REPLICATION_FACTOR", "api_name": "CreateTopics"}
    refused |= {"error_message": "only 1 broker(s) are registered.", "client_id": "deploy"}
    tables = {"error_codes": [_missed(9, 0, **refused), *(_missed(n, n) for n in range(1, 7))]}
    (found,) = find("unknown_topic", tables)
    said = "deploy could not create it: INVALID_REPLICATION_FACTOR (only 1 broker(s) are registered)."
    assert (said in found.text) == is_named
    assert found.advice.startswith("Correct what CreateTopics failed for") == is_named


def _recreated(clusters: tuple[str, str], *, ids: bool) -> list[str]:
    """Two brokers have a topic of that name: with ids of their own, or with offsets of their own."""
    where = ((ONE, clusters[0], "id-1", 50), (TWO, clusters[1], "id-2", 0))
    told = [
        {**CLIENT, **at, "topic": "orders", "topic_id": name, "partition": 0, "leader": 1}
        | {"first_time": second * SECOND, "last_time": 9 * SECOND}
        for second, (at, _, name, _) in enumerate(where)
    ]
    written = [
        {**CLIENT, **at, "call_id": 20 + second, "connection_id": 1 + second, "api_name": "Produce"}
        | {"topic": "orders", "partition": 0, "error_code": 0, "base_offset": offset, "time": second * SECOND}
        for second, (at, _, _, offset) in enumerate(where)
    ]
    tables = {
        "error_codes": [_missed(number, number) for number in range(1, 7)],
        "leaders": told if ids else [],
        "partitions": [] if ids else written,
        "servers": [
            {"address": at["broker_address"], "port": 9092, "cluster_id": cluster}
            for at, cluster, *_ in where
        ],
    }
    return [each.subject for each in find("topic_recreated", tables)]


@pytest.mark.parametrize("ids", [True, False])
def test_topics_of_one_name_in_two_clusters_are_two(ids: bool) -> None:
    """As those of a mirror, which writes what it reads."""
    assert _recreated(("one", "one"), ids=ids) == ["orders"]
    assert _recreated(("one", "two"), ids=ids) == []


@pytest.mark.parametrize(("made_at", "number"), [(4, 0), (1, 1), (None, 1)])
def test_a_client_that_waits_for_a_topic_to_be_made_storms_nobody(made_at: int | None, number: int) -> None:
    """It asks ten times a second from second 1 to 4. Somebody makes the topic later, before, or never."""
    asked = [_missed(n, 1, response_time=SECOND + n * SECOND // 10) for n in range(30)]
    calls = [
        {**row, "caller": "client", "status": "answered", "request_time": row["response_time"]}
        for row in asked
    ]
    made = {**CLIENT, **TWO, "topic": "orders", "partition": 0, "leader": 1}
    tables = {
        "api_calls": calls,
        "error_codes": asked,
        "leaders": [{**made, "first_time": 0, "last_time": made_at * SECOND}] if made_at else [],
    }
    assert len(find("metadata_storm", tables)) == number
