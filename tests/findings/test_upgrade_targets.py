"""Releases and products that clients are compared with."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.errors import UsageError
from kwsniff.findings.upgrade import _client
from kwsniff.findings.upgrade_targets import Target, find_target
from kwsniff.layout.catalog import load_catalog
from tests.findings.test_upgrade_reasons import row


@pytest.mark.parametrize(
    ("text", "name", "release"),
    [
        ("4.3", "4.3.1", "4.3.1"),
        ("Apache Kafka 3.9", "3.9.2", "3.9.2"),
        ("AutoMQ 1.6", "AutoMQ 1.6", "3.9.2"),
        ("automq-1.6.5", "AutoMQ 1.6", "3.9.2"),
        ("confluent 7.5.2", "Confluent Cloud or Server 7.5", "3.5.2"),
        ("MSK 3.7.x.kraft", "Amazon MSK 3.7.x.kraft", "3.7.2"),
        ("msk_3.5.1", "Amazon MSK 3.5.1", "3.5.1"),
        ("inkless-4.2.1-inkless", "Aiven Inkless 4.2.1 inkless", "4.2.1"),
    ],
)
def test_products_that_accept_what_a_release_of_kafka_accepts(text: str, name: str, release: str) -> None:
    found = find_target(text)
    assert (found.name, found.is_whole) == (name, True)
    assert found.ranges == load_catalog("").releases.speaks(release)


@pytest.mark.parametrize("text", ["Event Hubs", "event-hubs", "event_hubs", "azure event hubs"])
def test_event_hubs_under_every_name(text: str) -> None:
    found = find_target(text)
    assert (found.name, found.is_whole) == ("Azure Event Hubs", False)
    assert (found.ranges[0], found.ranges[1], found.ranges[3]) == ((3, 7), (4, 6), (0, 5))


@pytest.mark.parametrize("text", ["Redpanda 25.1", "redpanda-25.1", "redpanda:25.1.9"])
def test_redpanda(text: str) -> None:
    found = find_target(text)
    assert found.name == "Redpanda 25.1"
    assert found.ranges[1] == (4, 11)
    assert not found.knows(11)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9.9", "unknown release '9.9'"),
        ("kafka 9.9", "unknown release '9.9'"),
        ("kafka", "unknown release ''"),
        ("abc", "unknown product 'abc'. Known: 0.10.0.0, "),
        ("redpnda 25.1", "unknown product 'redpnda'; did you mean redpanda?"),
        ("redpanda", "unknown release of Redpanda; known: 25.1"),
        ("redpanda 99.1", "unknown release of Redpanda: 99.1; known: 25.1"),
        ("automq 1.16", "unknown release of AutoMQ: 1.16; known: 1.1, 1.6, 1.7"),
        ("msk", "Amazon MSK runs releases of Apache Kafka: say which, as in msk-4.1"),
        ("msk 9.9", "unknown release '9.9'"),
        ("WarpStream", "what WarpStream accepts is not known; a capture shows it: kwsniff analyze"),
    ],
)
def test_another_name_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_target(text)
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


PARTLY = Target("X", {0: (3, 13), 20: None, 18: (0, 3)}, is_whole=False, closes_on={18: (4, 999)})


@pytest.mark.parametrize(
    ("given", "verdict", "why"),
    [
        (row(5), "works", None),
        (row(2), "breaks", "below"),
        (row(5, api_key=20, api_name="DeleteTopics"), "breaks", "dropped"),
        (row(5, api_key=11, api_name="JoinGroup"), "unknown", "not_known"),
        (row(4, api_key=18, api_name="ApiVersions"), "unknown", "closed"),
        (row(3, api_key=18, api_name="ApiVersions"), "works", None),
    ],
)
def test_what_is_not_known_of_a_product_is_no_verdict(
    given: dict[str, Any], verdict: str, why: str | None
) -> None:
    client = _client(("shop", "10.0.0.1", "java"), [row(5), given], PARTLY)
    assert client.verdict == verdict
    assert [reason.why for reason in client.reasons] == ([] if why is None else [why])
    assert "DeleteTopics" not in client.not_tested
