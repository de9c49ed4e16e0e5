"""Captures of librdkafka's mock broker: against its own log, the clients' reports, and tshark."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import decoded, in_order
from tests.pipeline.witness import NEWEST, NO_ERRORS, pdus

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = sorted(  # those with a witness.tsv are the real brokers of test_corpus.py
    path.parent.name for path in CAPTURES.glob("*/about.toml") if not (path.parent / "witness.tsv").exists()
)
WHOLE = [name for name in NAMES if name != "large_messages"]  # that one is cut by its snaplen


def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CAPTURES / name / "about.toml").read_text())


def calls_of(name: str) -> list[dict[str, Any]]:
    return in_order(decoded(CAPTURES / name / about(name)["file"])["api_calls"])


def test_every_folder_says_what_it_is() -> None:
    assert len(NAMES) >= 8
    for name in NAMES:
        facts = about(name)
        assert {"purpose", "shows", "file", "client", "broker", "report", "requests"} <= set(facts)
        assert (CAPTURES / name / facts["file"]).stat().st_size <= 60_000


@pytest.mark.parametrize("name", WHOLE)
def test_requests_are_those_the_brokers_logged(name: str) -> None:
    found = Counter(row["api_name"] for row in calls_of(name))
    assert found == about(name)["requests"]


@pytest.mark.parametrize("name", WHOLE)
def test_every_connection_is_kafka_on_the_brokers_ports(name: str) -> None:
    facts = about(name)
    tables = decoded(CAPTURES / name / facts["file"])
    busy = [row for row in tables["connections"] if row["client_bytes"]]
    assert {row["protocol"] for row in busy} == {"kafka"}
    assert {row["broker_port"] for row in busy} <= set(facts["broker"]["ports"])
    assert all(row["status"] != "response_only" for row in tables["api_calls"])


@pytest.mark.parametrize("name", WHOLE)
def test_messages_are_as_many_as_the_client_sent(name: str) -> None:
    """Delivered records are those of produce calls without error, or without any answer (acks 0)."""
    report = about(name)["report"]
    delivered = sum(
        row["record_count"]
        for row in calls_of(name)
        if row["api_name"] == "Produce" and row["error_code"] in (0, None)
    )
    assert delivered == report["produced"]


def test_transaction_shows_its_id() -> None:
    rows = calls_of("transaction")
    assert {row["transactional_id"] for row in rows if row["api_name"] in ("InitProducerId", "EndTxn")} == {
        "till-7"
    }
    assert {row["transactional_id"] for row in rows if row["api_name"] == "Produce"} == {"till-7"}


def test_no_acks_shows_calls_that_nobody_answers() -> None:
    produced = [row for row in calls_of("no_acks") if row["api_name"] == "Produce"]
    assert {(row["acks"], row["status"]) for row in produced} == {
        (0, "no_response_expected"),
        (1, "answered"),
    }


def test_three_brokers_have_three_latencies() -> None:
    facts = about("three_brokers")
    best: dict[int, int] = {}
    for row in calls_of("three_brokers"):
        if row["api_name"] == "Produce":
            port = row["broker_port"]
            best[port] = min(best.get(port, 10**12), row["latency_ns"])
    first, second, third = (best[port] for port in facts["broker"]["ports"])
    assert first < second < third


def test_kafka_python_falls_back_to_older_api_versions() -> None:
    rows = [row for row in calls_of("kafka_python") if row["api_name"] == "ApiVersions"]
    assert {(row["api_version"], row["error_code"]) for row in rows} == {(4, 35), (2, 0)}
    assert {row["client_software_name"] for row in rows if row["api_version"] == 4} == {"kafka-python"}


def test_cut_messages_are_not_guessed_at() -> None:
    rows = decoded(CAPTURES / "large_messages" / "capture.pcap")["api_calls"]
    known = set(about("large_messages")["requests"])
    assert {row["api_name"] for row in rows if row["api_name"]} <= known
    assert Counter(row["api_name"] for row in rows) == about("large_messages")["requests"]
    assert any(row["reason"] == "cut_by_snaplen" for row in rows)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", WHOLE)
def test_tshark_sees_the_same_calls(name: str) -> None:
    """Frame by frame: every request and response, and what tshark 4.0 can say about it."""
    facts = about(name)
    messages = pdus(CAPTURES / name / facts["file"], facts["broker"]["ports"])
    ours = calls_of(name)
    requests = sorted(
        (
            row["request_end_frame"],
            row["api_key"],
            row["api_version"],
            row["correlation_id"],
            row["client_id"],
        )
        for row in ours
    )
    theirs = sorted(
        (pdu["frame"], pdu["api_key"], pdu["api_version"], pdu["correlation_id"], pdu["client_id"])
        for pdu in messages
        if pdu["to_broker"]
    )
    assert requests == theirs
    answers = {
        (row["response_end_frame"], row["correlation_id"]): row for row in ours if row["response_frame"]
    }
    compared = 0
    for pdu in messages:
        if pdu["to_broker"] or pdu["correlation_id"] is None:
            continue  # tshark lost the request of what it calls undecoded, and says nothing of it
        row = answers[pdu["frame"], pdu["correlation_id"]]
        if pdu["request_frame"] is not None:
            assert pdu["request_frame"] == row["request_end_frame"]
        if row["api_version"] <= NEWEST.get(row["api_key"], -1) and row["api_key"] not in NO_ERRORS:
            assert pdu["errors"][:1] == ([row["error_code"]] if row["error_code"] else [])
            compared += 1
    assert compared >= 4
    unheard = [row for row in ours if row["status"] == "answered"]
    assert len(unheard) == len([pdu for pdu in messages if not pdu["to_broker"]])
