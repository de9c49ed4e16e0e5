"""What a server is: by what it lists, by its names, by what clients say to it."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import TABLES
from kwsniff.tables.servers import name_servers
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata import servers
from kwsniff.timelines.metadata.servers import Servers

ADDRESS = ("10.0.0.9", 9092)
CATALOG = load_catalog("")
HOST = "b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com"


def versions(release: str, *more: tuple[int, int, int], without: int = 0, **said: Any) -> dict[str, Any]:
    """An ApiVersions response with the ranges of a release, but the last ones, and `more`."""
    spans = [(key, *span) for key, span in sorted(CATALOG.releases.speaks(release).items())]
    names = ("api_key", "min_version", "max_version")
    told = [*spans[: len(spans) - without], *more]
    return {"error_code": 0, "api_keys": [dict(zip(names, each, strict=True)) for each in told], **said}


def feature(name: str) -> dict[str, Any]:
    return {"supported_features": [{"name": name, "min_version": 0, "max_version": 4}]}


def metadata(*hosts: str, cluster_id: str | None = None) -> dict[str, Any]:
    return {"cluster_id": cluster_id, "brokers": [{"node_id": 1, "host": host} for host in hosts]}


def one(found: Servers) -> tuple[Any, ...]:
    found.finish()
    (server,) = found.rows
    return server["product"], server["version_min"], server["version_max"]


def tracker() -> Servers:
    return Servers(CATALOG, MemoryBudget())


def row(table: str, **columns: Any) -> Any:
    nulls = dict.fromkeys(column.name for column in TABLES[table].columns)
    return batch_of(table, [nulls | {"broker_address": ADDRESS[0], "broker_port": ADDRESS[1]} | columns])


def connection(**columns: Any) -> Any:
    return row("connections", **({"calls": 3, "first_time": 1_000, "last_time": 1_000} | columns))


@pytest.mark.parametrize(
    ("release", "span"),
    [
        ("0.10.2.1", ("0.10.2.0", "0.10.2.2")),  # by hand, from releases.tsv: no range changed within
        ("2.8.1", ("2.8.0", "2.8.2")),
        ("4.0.0", ("4.0.0", "4.0.0")),  # JoinGroup is 0-9 again from 4.0.1 on (KAFKA-19444)
        ("4.3.1", ("4.3.0", "4.3.1")),
    ],
)
def test_ranges_name_a_release(release: str, span: tuple[str, str]) -> None:
    found = tracker()
    found.add_versions(ADDRESS, versions(release))
    assert one(found) == ("apache_kafka", *span)


@pytest.mark.parametrize(
    "said",
    [
        versions("4.3.1", (96, 0, 0)),  # an API of no release
        versions("4.3.1", without=60),  # a few ranges are anybody's
        versions("4.3.1", error_code=35),  # the list is that of ApiVersions alone
        {"error_code": 0, "api_keys": None},
        {"error_code": 0, "api_keys": [{"api_key": 0}]},  # the message breaks off
    ],
)
def test_without_a_release_with_these_ranges_a_server_is_unknown(said: dict[str, Any]) -> None:
    found = tracker()
    found.add_versions(ADDRESS, said)
    found.add("connections", connection())
    assert one(found) == ("unknown", None, None)


def test_a_server_that_was_upgraded_has_both_releases() -> None:
    found = tracker()
    for release in ("3.9.2", "4.3.1", "3.9.2"):
        found.add_versions(ADDRESS, versions(release))
    assert one(found) == ("apache_kafka", "3.9.0", "4.3.1")
    assert "2 different lists" in found.rows[0]["proof"]


def test_one_foreign_list_denies_that_it_is_apaches() -> None:
    """Behind a load balancer two products may answer at one address."""
    found = tracker()
    found.add_versions(ADDRESS, versions("3.9.2"))
    found.add_versions(ADDRESS, versions("3.9.2", (700, 0, 1)))
    assert one(found) == ("unknown", None, None)


@pytest.mark.parametrize(
    ("product", "said"),
    [
        ("automq", versions("3.9.2", **feature("automq.version"))),
        ("automq", versions("3.9.2", (515, 0, 1))),
        ("inkless", versions("4.0.0", (500, 0, 0), (501, 0, 0))),
        ("redpanda", versions("2.4.0", (15000, 0, 0))),
        ("confluent", versions("3.9.2", (32767, 0, 0))),
        ("redpanda", metadata("one", cluster_id="redpanda.0c2d6bd0-7d5c-4b3a-9a0e-0e5a1e3c1f11")),
        ("event_hubs", metadata("shop.servicebus.windows.net")),
        ("confluent", metadata("b3-pkc-921jm.us-east-2.aws.confluent.cloud")),
        ("msk", metadata("one", HOST)),
        ("msk", metadata("boot-vab1abab.c1.kafka-serverless.us-east-1.amazonaws.com")),
        ("redpanda", metadata("seed-374cea23.cjfoit0ccm8eecla1s60.fmc.prd.cloud.redpanda.com")),
        (
            "unknown",
            metadata("kafka.example.com", "servicebus.windows.net.example", cluster_id="my-redpanda.1"),
        ),
    ],
)
def test_a_response_names_the_product(product: str, said: dict[str, Any]) -> None:
    found = tracker()
    (found.add_metadata if "brokers" in said else found.add_versions)(ADDRESS, said)
    assert one(found) == (product, None, None)
    assert (found.rows[0]["proof"] is None) == (product == "unknown")


@pytest.mark.parametrize(
    ("product", "columns"),
    [
        ("msk", {"tls_server_name": HOST, "calls": 0}),
        ("warpstream", {"client_id": "billing,warpstream_az=us-east-1a"}),
        ("warpstream", {"client_id": "ws_host_override=localhost"}),
        ("unknown", {"client_id": "news_letter=1"}),
    ],
)
def test_a_connection_names_the_product(product: str, columns: dict[str, Any]) -> None:
    found = tracker()
    found.add("connections", connection(**columns))
    assert one(found)[0] == product


def test_a_connection_that_says_nothing_makes_no_server() -> None:
    found = tracker()
    found.add("connections", connection(calls=0, tls_server_name="www.example.com"))
    found.finish()
    assert found.rows == []


def test_a_mechanism_names_the_product_and_ranges_its_release() -> None:
    """Amazon MSK runs releases of Apache Kafka."""
    found = tracker()
    for mechanism in (None, "AWS_MSK_IAM"):
        found.add("api_calls", row("api_calls", sasl_mechanism=mechanism))
    found.add_versions(ADDRESS, versions("3.6.0"))
    assert one(found) == ("msk", "3.6.0", "3.6.2")


def test_connections_and_calls_are_added_up() -> None:
    found = tracker()
    times = {"first_time": 5_000, "last_time": 9_000}
    found.add("connections", connection(calls=2, **times))
    found.add("connections", connection(calls=4, first_time=2_000, last_time=3_000))
    found.finish()
    (total,) = found.rows
    assert (total["connections"], total["calls"]) == (2, 6)
    assert (total["first_time"], total["last_time"]) == (2_000, 9_000)


def test_servers_beyond_the_bound_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MOST_SERVERS", 2)
    budget = MemoryBudget()
    found = Servers(CATALOG, budget)
    for port in range(3):
        found.add_metadata((ADDRESS[0], port), metadata("one"))
    found.finish()
    assert [row["port"] for row in found.rows] == [0, 1]
    assert budget.left_out == 1


def test_a_server_that_lists_ever_new_features_takes_no_more_memory() -> None:
    budget = MemoryBudget()
    found = Servers(CATALOG, budget)
    for number in range(300):
        found.add_versions(ADDRESS, versions("4.3.1", **feature(f"feature.{number}")))
    found.finish()
    assert len(found.rows[0]["features"]) == servers._MOST_FEATURES
    assert budget.left_out == 300 - servers._MOST_FEATURES


def test_products_in_words() -> None:
    known = [("apache_kafka", "4.3.0", "4.3.1"), ("unknown", None, None), ("msk", "3.6.0", "3.6.0")]
    assert name_servers(known) == "Apache Kafka 4.3.0 to 4.3.1, Amazon MSK 3.6.0"
    assert name_servers([("unknown", None, None)]) == ""
    many = [(name, None, None) for name in ("redpanda", "automq", "inkless", "confluent", "msk")]
    assert name_servers(many) == "Redpanda, AutoMQ, Aiven Inkless, 2 more"
