"""Real brokers and clients: every call against the brokers' own log, every frame to its last byte."""

from __future__ import annotations

import tomllib
from collections import Counter
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from tests.broker.about import camel
from tests.broker.requestlog import OFFSETS, Logged, read
from tests.pipeline.compare import Tables, decoded, in_order

CAPTURES = Path(__file__).parents[2] / "captures"
EVERY = sorted(path.parent.name for path in CAPTURES.glob("*/about.toml"))
NAMES = sorted(path.parent.name for path in CAPTURES.glob("*/witness.tsv"))
EDGE = timedelta(milliseconds=50)
LARGEST_CORPUS = 25_000_000
RENAMED = {
    "AlterIsr": "AlterPartition",
    "ListClientMetricsResources": "ListConfigResources",
}  # since 3.2, 4.1
CLOCKS_NS = 100_000  # a capture has microseconds, and two clocks differ
REPEATED_IDS = {"sasl_again"}  # each authentication begins with the same correlation id
API_VERSIONS, ENVELOPE = 18, 58
# Answered before the broker's log begins: while a connection authenticates, and what comes in an Envelope.
BEFORE_THE_LOG = {17, 36}


@cache
def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))


@cache
def tables(name: str) -> Tables:
    return decoded(CAPTURES / name / about(name)["file"])


@cache
def logged(name: str) -> list[Logged]:
    return read(CAPTURES / name / "witness.tsv")


def calls_of_brokers(name: str) -> list[dict[str, Any]]:
    """Without those to a proxy, which sends each to a broker."""
    proxies = about(name)["broker"].get("proxies", ())
    return [row for row in tables(name)["api_calls"] if row["broker_port"] not in proxies]


def cut(name: str) -> bool:
    """Whether packets were cut, so that messages cannot be decoded."""
    return int(about(name)["snaplen"]) < 10_000


def encrypted(name: str) -> bool:
    return bool(about(name).get("encrypted"))


OPEN = [name for name in NAMES if not encrypted(name)]
WHOLE = [name for name in OPEN if not cut(name)]


def is_logged(name: str, row: dict[str, Any]) -> bool:
    if row["api_key"] in BEFORE_THE_LOG | {ENVELOPE}:
        return False
    return row["api_key"] != API_VERSIONS or not authenticated(name)


def is_witnessed(name: str, row: dict[str, Any]) -> bool:
    """Not at the edges of the recording, where a call may be in one of log and capture only."""
    begin, end = about(name)["witnessed"]
    last = row["response_end_time"] or row["request_end_time"]
    return bool(begin + EDGE < row["request_time"] and last < end - EDGE)


def authenticated(name: str) -> bool:
    return "SASL" in about(name)["broker"]["protocol"]


def identity(row: Any) -> tuple[Any, ...]:
    get = row.get if isinstance(row, dict) else lambda key: getattr(row, key)
    return (get("broker_port"), get("client_port"), get("correlation_id"), get("api_key"), get("api_version"))


def named(line: Logged) -> str:
    name = camel(line.api)
    return RENAMED.get(name, name)


def test_the_corpus_stays_small() -> None:
    files = [path for path in CAPTURES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LARGEST_CORPUS


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", OPEN)
def test_calls_that_were_answered_are_those_the_brokers_logged(name: str) -> None:
    """Same port, correlation id, API, version, client: each once, none missing, none more."""
    rows = in_order(calls_of_brokers(name))
    theirs = Counter((*identity(row), row.client_id or None) for row in logged(name) if not row.forwarded)
    seen = Counter((*identity(row), row["client_id"] or None) for row in rows)
    answered = Counter(
        (*identity(row), row["client_id"] or None)
        for row in rows
        if is_logged(name, row) and row["status"] in ("answered", "no_response_expected")
        if is_witnessed(name, row)
    )
    assert theirs - seen == Counter()
    assert answered - theirs == Counter()
    envelopes = [row for row in tables(name)["api_calls"] if row["api_key"] == ENVELOPE]
    assert len(envelopes) >= sum(row.forwarded for row in logged(name))


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", WHOLE)
def test_answers_say_what_the_brokers_logged(name: str) -> None:
    """First error, number of errors, throttle time, bytes of records, software: call by call."""
    rows = {identity(row): row for row in tables(name)["api_calls"]}
    for line in logged(name):
        row = rows.get(identity(line))
        if line.forwarded or row is None or row["status"] not in ("answered", "no_response_expected"):
            continue
        assert row["api_name"] == named(line)
        if row["status"] == "answered" and row["reason"] != "undecodable":
            assert (line, row["error_code"], row["error_count"]) == (line, line.error_code, line.error_count)
            assert row["throttle_time_ms"] in (None, line.throttle_time_ms)
        if line.record_bytes is not None and row["api_name"] in ("Produce", "Fetch"):
            assert (line, row["record_bytes"] or 0) == (line, line.record_bytes)
        if line.software != "unknown":
            assert row["client_software_name"] in (line.software, None)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", WHOLE)
def test_offsets_are_those_the_brokers_logged(name: str) -> None:
    """Where records were written, how far logs reach, what groups committed: call by call."""
    calls = {identity(row): row for row in tables(name)["api_calls"]}
    found: dict[int, list[dict[str, Any]]] = {}
    for row in tables(name)["partitions"]:
        found.setdefault(row["call_id"], []).append(row)
    for line in logged(name):
        call = calls.get(identity(line))
        if call is None or call["status"] != "answered" or line.api_key not in OFFSETS or line.forwarded:
            continue
        column = OFFSETS[line.api_key][2]
        offsets = [row[column] for row in found.get(call["call_id"], [])]
        told = sorted(offset for offset in offsets if offset is not None and offset >= 0)
        assert (line, told) == (line, list(line.offsets))


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", WHOLE)
def test_no_call_is_shorter_than_the_broker_worked_on_it(name: str) -> None:
    """The broker's clock runs within the call's, and both are in the recording: nothing here waits."""
    rows = {identity(row): row for row in tables(name)["api_calls"]}
    for line in logged(name):
        row = rows.get(identity(line))
        if row and row["latency_ns"] is not None and not line.forwarded and name not in REPEATED_IDS:
            assert row["latency_ns"] >= line.served_us * 1000 - CLOCKS_NS, line


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_decoded_to_its_last_byte(name: str) -> None:
    """No anomaly but those that about.toml names; nothing undecodable, nothing foreign."""
    found = {row["name"] for row in tables(name)["anomalies"]}
    assert found <= set(about(name)["anomalies"])
    if not about(name).get("partial"):
        assert set(about(name)["anomalies"]) <= found
    if name in WHOLE:
        busy = [row for row in tables(name)["connections"] if row["client_bytes"]]
        assert {row["protocol"] for row in busy} <= {"kafka"}
        assert {row["broker_port"] for row in busy} <= set(about(name)["broker"]["ports"])
        reasons = {row["reason"] for row in tables(name)["api_calls"]}
        assert reasons.isdisjoint({"unknown_api", "unknown_version"})
        assert ("undecodable" in reasons) == ("undecodable_response" in found)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", WHOLE)
def test_records_are_as_many_as_the_client_sent(name: str) -> None:
    sent = [row for row in calls_of_brokers(name) if row["api_name"] == "Produce"]
    chosen = about(name)["report"]["producers"]
    sent = [row for row in sent if not chosen or row["client_id"] in chosen]
    stored = {("answered", 0), ("no_response_expected", None)}
    counts = [row["record_count"] for row in sent if (row["status"], row["error_code"]) in stored]
    if None in counts:  # compressed before format 2: only a decompressor knows
        assert {row["api_version"] for row in sent} <= {0, 1, 2}
        counts = []
    assert sum(counts) == (about(name)["report"]["produced"] if counts else 0)


def test_first_steps_shows_what_the_readme_tells() -> None:
    rows = tables("first_steps")["api_calls"]
    errors = Counter((row["api_name"], row["error_name"]) for row in rows if row["error_code"])
    assert errors["Produce", "NOT_LEADER_OR_FOLLOWER"] == 1
    assert errors["Metadata", "UNKNOWN_TOPIC_OR_PARTITION"] >= 2
    assert errors["JoinGroup", "MEMBER_ID_REQUIRED"] == 1
    assert len(errors) == 3
    misspelt = [row for row in rows if row["api_name"] == "Metadata" and row["error_code"] == 3]
    assert {topic for row in misspelt for topic in row["topics"]} == {"ordres"}
    assert {row["client_id"] for row in rows} == {"shop-producer", "billing-1"}
    assert {row["group_id"] for row in rows if row["api_name"] == "JoinGroup"} == {"billing"}
    assert {row["client_software_name"] for row in rows} == {"confluent-kafka-python"}


@pytest.mark.parametrize("name", [name for name in NAMES if encrypted(name)])
def test_no_calls_are_invented_where_all_is_encrypted(name: str) -> None:
    busy = [row for row in tables(name)["connections"] if row["client_bytes"]]
    assert {row["protocol"] for row in busy} == {"tls"}
    assert len(busy) >= 2
    assert tables(name)["api_calls"] == []


@pytest.mark.slow
def test_what_real_traffic_has_been_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the calls per API, version and direction in all captures: no layout is without real bytes."""
    requests: Counter[tuple[int, str, int]] = Counter()
    responses: Counter[tuple[int, str, int]] = Counter()
    for name in EVERY:
        if cut(name):
            continue
        for row in tables(name)["api_calls"]:
            if row["api_name"] is None:
                continue
            key = (row["api_key"], row["api_name"], row["api_version"])
            requests[key] += row["request_frame"] is not None
            responses[key] += row["response_frame"] is not None
    apis = {key[0] for key in requests}
    every = {
        (api.key, version)
        for api in load_catalog().apis.values()
        for version in range(api.min_version, api.max_version + 1)
    }
    with capsys.disabled():
        print(f"\n{len(apis)} APIs, {len(requests)} versions in {len(EVERY)} captures")  # noqa: T201
        for key in sorted(requests):
            print(f"  {key[0]:3} {key[1]:32} {key[2]:3} {requests[key]:6} {responses[key]:6}")  # noqa: T201
    assert {(key, version) for key, _, version in requests} == every
    assert {(key, version) for (key, _, version), count in responses.items() if count} == every


def test_the_metadata_log_has_its_name() -> None:
    """Its topic id is fixed (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID); no message names it."""
    log = tables("quorum")
    rows = [row for row in log["partitions"] if row["topic_id"] == "AAAAAAAAAAAAAAAAAAAAAQ"]
    assert rows
    assert {row["topic"] for row in rows} == {"__cluster_metadata"}
    fetches = [row for row in log["api_calls"] if row["api_name"] == "Fetch" and row["topics"]]
    assert {topic for row in fetches for topic in row["topics"]} == {"__cluster_metadata"}
