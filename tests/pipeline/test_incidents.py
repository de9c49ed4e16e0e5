"""Recordings of incidents with a known cause: they show what about.toml says was done."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.broker import index
from tests.broker.requestlog import Logged, read
from tests.pipeline.clocks import identity
from tests.pipeline.compare import Row, Tables, decoded

INCIDENTS = Path(__file__).parents[2] / "captures" / "incidents"
NAMES = sorted(path.parent.name for path in INCIDENTS.glob("*/about.toml"))
BLAMED = {"client", "broker", "network", "follower", "configuration", "capture"}
SUBJECTS = {
    "client", "group", "broker", "topic", "partition", "transactional_id", "connection", "capture"
}  # fmt: skip
# Errors that must be in the answers: one of each set.
ERRORS: dict[str, set[int]] = {
    "not_enough_replicas": {19, 20},
    "request_timed_out": {7},
    "stale_leader": {6},
    "message_too_large": {10},
    "not_authorized": {29},
    "authentication_failed": {58},
    "sasl_mechanism_refused": {33},
    "producer_fenced": {47, 90},
    "offset_out_of_range": {1},
    "unknown_topic": {3},
    "session_expired": {25},
    "static_848": {111},
    "transaction_timeout_java": {47, 90},
    "commit_refused": {25},
    "topic_recreated": {3},
    "session_timeout_refused": {26},
    "transaction_timeout_refused": {50},
    "coordinator_missing": {15},
    "fetch_sessions_lost": {70},
    "leader_flaps": {6},
    "mixed_java": {23},
    "offline_partition": {5},
}
# REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION (an older broker's answer to ApiVersions), TOPIC_ALREADY_EXISTS
# (create if missing), CONCURRENT_TRANSACTIONS, MEMBER_ID_REQUIRED
ROUTINE = {0, 27, 35, 36, 51, 79}
# UNKNOWN_TOPIC_OR_PARTITION; a coordinator is loading its part, is not available, or is not the one
FIRST_MOMENTS = {3, 14, 15, 16}
# NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH: a leader moved, as in a rolling restart
MOVED_LEADER = {6, 74}


@cache
def about(name: str) -> dict[str, Any]:
    return tomllib.loads((INCIDENTS / name / "about.toml").read_text("utf-8"))


SIDES = [(name, side) for name in NAMES for side in about(name)["files"]]


@cache
def tables(name: str, side: str) -> Tables:
    return decoded(INCIDENTS / name / about(name)["files"][side])


@cache
def logged(name: str) -> list[Logged]:
    """What the brokers logged; nothing where others than those recorded talked to them as well."""
    return read(INCIDENTS / name / about(name)["witness"]) if "witness" in about(name) else []


def one_of(name: str) -> Tables:
    """The tables of the side that was recorded, beside the brokers if both were."""
    files = about(name)["files"]
    return tables(name, "broker" if "broker" in files else "client")


def spent(name: str, part: str, least_ns: int) -> int:
    """Calls with a part that took so long."""
    return sum((row[part] or 0) >= least_ns for row in one_of(name)["latencies"])


ADDED = ("controller_listener", "delivery_delayed", "monitor_storm")
"""Findings that came after the contract, which says that names may be added."""


@pytest.mark.parametrize("name", NAMES)
def test_the_expected_finding_is_one_of_the_contract(name: str, shared: Path) -> None:
    text = (shared / "DESIGN.md").read_text("utf-8")
    section = text[text.index("### 8.2") : text.index("### 8.3")]
    facts = about(name)
    named = {*re.findall(r"`([a-z_]+)`", section), *ADDED}
    assert not facts["finding"] or facts["finding"] in named
    assert {facts["blames"]} <= BLAMED | {""}
    assert {facts["subject_kind"]} <= SUBJECTS | {""}
    assert bool(facts["finding"]) == bool(facts["blames"]) == bool(facts["subject"])
    assert facts["did"]


@pytest.mark.sample(16)
@pytest.mark.parametrize(("name", "side"), SIDES)
def test_frames_are_decoded_but_for_what_is_named(name: str, side: str) -> None:
    found = tables(name, side)
    assert {row["name"] for row in found["anomalies"]} <= set(about(name)["anomalies"])
    reasons = {row["reason"] for row in found["api_calls"]}
    assert reasons.isdisjoint({"unknown_api", "unknown_version"})
    assert found["connections"]


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", NAMES)
def test_what_the_brokers_logged_was_seen(name: str) -> None:
    seen = Counter(identity(row) for row in one_of(name)["api_calls"])
    theirs = Counter(identity(line) for line in logged(name) if not line.forwarded)
    # What is inside TLS shows in no capture without its secrets.
    assert theirs - seen == (theirs if about(name)["finding"] == "tls_handshake_failed" else Counter())


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ERRORS)
def test_the_error_of_the_incident_is_there(name: str) -> None:
    found = Counter(row["error_code"] for row in one_of(name)["error_codes"])
    assert any(found[code] for code in ERRORS[name]), found


def latencies(name: str, side: str, api: str) -> list[Row]:
    return [row for row in tables(name, side)["latencies"] if row["api_name"] == api]


def empty(name: str, side: str) -> list[Row]:
    """Connections on which nothing was said."""
    rows = tables(name, side)["connections"]
    return [row for row in rows if not row["client_bytes"] and not row["broker_bytes"]]


def closed(name: str) -> list[Row]:
    """Calls that were cut off by the end of their connection."""
    reasons = ("connection_closed", "connection_reset")
    return [row for row in one_of(name)["api_calls"] if row["reason"] in reasons]


def cut_off(name: str) -> list[Row]:
    """Calls whose response was cut off by their client."""
    return [row for row in one_of(name)["api_calls"] if row["reason"] == "cut_off_by_client"]


def connections(name: str, **values: object) -> list[Row]:
    """Connections with these values."""
    rows = one_of(name)["connections"]
    return [row for row in rows if all(row[column] == value for column, value in values.items())]


def reported(name: str, more: str, less: str) -> int:
    """How much more of one thing than of another clients counted."""
    counts = about(name)["report"]
    return int(counts[more] - counts[less])


SECOND = 1_000_000_000
# What else shows that an incident happened: a count, and how much it must be at least.
SHOWN: dict[str, tuple[Callable[[], int], int]] = {
    "link_full_java": (
        lambda: max(row["network_ns"] for row in one_of("link_full_java")["latencies"]),
        SECOND // 10,
    ),
    # The relay takes packets of 1200 bytes, 52 of them for IP, TCP and timestamps.
    "mtu_answers": (
        lambda: max(row["bytes"] for row in tables("mtu_answers", "broker")["tcp_events"] if row["bytes"]),
        1200 - 52,
    ),
    # A delayed acknowledgement takes 40 ms; 1 MB at 64 kB per round trip of 100 ms takes 1.6 s.
    "nagle_stall": (lambda: spent("nagle_stall", "request_transmission_ns", 35 * SECOND // 1000), 30),
    "window_unscaled": (lambda: spent("window_unscaled", "response_transmission_ns", SECOND), 1),
    "amqp_franz": (lambda: len(connections("amqp_franz", answered_in="amqp")), 1),
    "no_version_in_common": (
        lambda: len(connections("no_version_in_common", tls_alert="protocol_version")),
        1,
    ),
    "proxy_header_1": (lambda: len(connections("proxy_header_1", protocol="proxy")), 3),
    "backend_down": (lambda: len(connections("backend_down", closed_by="broker", broker_bytes=0)), 3),
    "connect_slow": (lambda: sum(row["connect_ns"] or 0 for row in connections("connect_slow")), SECOND),
    "middlebox_reset": (lambda: len(connections("middlebox_reset", reset_by="broker")), 1),
    "mtu_requests": (lambda: max(row["client_lost_bytes"] for row in connections("mtu_requests")), 1000),
    "response_refused": (lambda: len(cut_off("response_refused")), 1),
    "unreachable_port": (lambda: len(connections("unreachable_port", icmp_error="port_unreachable")), 2),
    "advertised_unreachable": (lambda: len(empty("advertised_unreachable", "broker")), 3),
    "broker_hangs_up": (lambda: len(closed("broker_hangs_up")), 3),
    "broker_stalled": (
        lambda: max(row["total_ns"] for row in latencies("broker_stalled", "broker", "Produce")),
        2 * SECOND,
    ),
    "busy_fetch": (
        lambda: sum(row["max_wait_ms"] == 1 for row in one_of("busy_fetch")["api_calls"]),
        40,
    ),
    "connection_limit": (lambda: len(closed("connection_limit")), 5),
    "connection_refused": (lambda: len(empty("connection_refused", "broker")), 5),
    "idle_closed": (lambda: len(closed("idle_closed")), 2),
    "idle_members": (lambda: max(row["member_count"] for row in one_of("idle_members")["groups"]), 3),
    "path_dead": (
        lambda: sum(
            row["client_retransmitted_bytes"] for row in tables("path_dead", "client")["connections"]
        ),
        100,
    ),
    "plaintext_on_tls": (lambda: len(closed("plaintext_on_tls")), 5),
    "poll_interval_exceeded": (
        lambda: sum(row.api == "LEAVE_GROUP" for row in logged("poll_interval_exceeded")),
        2,
    ),
    "rebalance_storm": (lambda: len(one_of("rebalance_storm")["groups"]), 6),
    "receiver_full": (
        lambda: max(row["client_zero_window_ns"] for row in one_of("receiver_full")["connections"]),
        2 * SECOND,
    ),
    "replication_slow": (
        lambda: sum(
            row.api == "PRODUCE" and (row.remote_us or 0) > 300_000 for row in logged("replication_slow")
        ),
        5,
    ),
    "sasl_expected": (lambda: len(closed("sasl_expected")), 5),
    "share_lock_expired": (
        lambda: len({row.client_id for row in logged("share_lock_expired") if row.api == "SHARE_FETCH"}),
        2,
    ),
    "throttled": (lambda: sum(row.throttle_time_ms > 0 for row in logged("throttled")), 5),
    "creation_rate": (
        lambda: sum(
            row["total_ns"] > SECOND // 2 for row in latencies("creation_rate", "broker", "ApiVersions")
        ),
        10,
    ),
    "slow_broker_java": (
        lambda: sum(
            row["total_ns"] > SECOND // 10 for row in latencies("slow_broker_java", "broker", "Produce")
        ),
        10,
    ),
    "lag_python": (
        lambda: about("lag_python")["report"]["produced"] - about("lag_python")["report"]["consumed"],
        300,
    ),
    "loss_5": (
        lambda: sum(row["client_retransmitted_bytes"] for row in tables("loss_5", "client")["connections"]),
        500,
    ),
    "metadata_storm_java": (
        lambda: sum(
            row.api == "METADATA" and row.client_id == "monitor" for row in logged("metadata_storm_java")
        ),
        40,
    ),
    "recompressed_java": (
        lambda: len({row["codec"] for row in one_of("recompressed_java")["record_batches"]}),
        2,
    ),
    "commit_storm": (
        lambda: sum(row.api == "OFFSET_COMMIT" for row in logged("commit_storm")),
        240,
    ),
    # Broker 2 would lead four of twelve partitions, and gets none of the writes.
    "leaders_skewed": (
        lambda: sum(row.api == "PRODUCE" and row.broker_port != 9093 for row in logged("leaders_skewed")),
        24,
    ),
    "cross_rack": (
        lambda: len({row.broker_port for row in logged("cross_rack") if row.api == "FETCH"}),
        2,
    ),
    "idle_dropped": (
        lambda: sum(row["client_retransmitted_bytes"] > 0 for row in connections("idle_dropped")),
        2,
    ),
    "rebalance_slow": (
        lambda: max(row["duration_ns"] or 0 for row in one_of("rebalance_slow")["groups"]),
        5 * SECOND,
    ),
    # What a reader counted afterwards, and what the producer was told.
    "duplicated_records": (lambda: reported("duplicated_records", "consumed", "produced"), 1),
    "lost_records": (lambda: reported("lost_records", "produced", "consumed"), 6),
    "retention_overtakes": (
        lambda: len({row["log_start_offset"] for row in one_of("retention_overtakes")["partitions"]}),
        10,
    ),
    "tls_to_plain_java": (
        lambda: sum(row["protocol"] == "tls" for row in one_of("tls_to_plain_java")["connections"]),
        5,
    ),
    "monitor_storm": (
        lambda: sum(row["api_name"] == "OffsetFetch" for row in one_of("monitor_storm")["api_calls"]),
        about("monitor_storm")["report"]["asked"],
    ),
    "controller_listener": (lambda: len(connections("controller_listener", broker_port=9093)), 1),
    # The brokers logged none of the requests that they refused to read, or to store.
    "request_too_large": (lambda: len(closed("request_too_large")), 4),
    "unacknowledged_refused": (
        lambda: len(connections("unacknowledged_refused", closed_by="broker", ending="fin")),
        4,
    ),
    "left_open": (
        lambda: len({row.client_port for row in logged("left_open") if row.api == "PRODUCE"}),
        13,
    ),
    # Two records a second, for two seconds each.
    "delivery_delayed": (
        lambda: (
            about("delivery_delayed")["report"]["produced"]
            // sum(row.api == "PRODUCE" for row in logged("delivery_delayed"))
        ),
        4,
    ),
    "one_at_a_time": (
        lambda: min(
            sum(row.api == "PRODUCE" for row in logged("one_at_a_time")),
            60 * len(connections("one_at_a_time", max_in_flight=1)),
        ),
        60,
    ),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", SHOWN)
def test_the_recording_shows_what_was_done(name: str) -> None:
    count, least = SHOWN[name]
    assert count() >= least


def test_one_key_fills_one_partition() -> None:
    rows = [row for row in one_of("hot_partition")["partitions"] if row["client_id"] == "shop"]
    assert {row["partition"] for row in rows if row["api_name"] == "Produce"} != set()
    assert len({row["partition"] for row in rows if row["api_name"] == "Produce"}) == 1


def test_a_reader_of_committed_records_is_held_back() -> None:
    """While the transaction is open, the log reaches further than what may be read."""
    rows = [row for row in one_of("read_committed_held_back")["partitions"] if row["last_stable_offset"]]
    assert any(row["high_watermark"] - row["last_stable_offset"] >= 10 for row in rows)


def test_an_answer_comes_when_its_client_has_given_up() -> None:
    """The broker answered at once; the client had closed every connection before that."""
    assert {row["status"] for row in tables("timeout_too_short", "broker")["api_calls"]} == {"answered"}
    ends = [row["ending"] for row in tables("timeout_too_short", "client")["connections"]]
    assert len(ends) >= 4
    assert set(ends) == {"reset"}


def test_every_finding_has_something_that_shows_it() -> None:
    others = {
        "churn_kafkajs",
        "hot_partition",
        "member_stuck_java",
        "read_committed_held_back",
        "storm_sarama",
        "timeout_too_short",
    }
    shown = {about(name)["finding"] for name in (*ERRORS, *SHOWN, *others)}
    assert {about(name)["finding"] for name in NAMES} - {""} == shown


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [name for name in NAMES if not about(name)["finding"]])
def test_healthy_recordings_have_no_errors_but_routine_ones(name: str) -> None:
    codes = {row["error_code"] for row in one_of(name)["error_codes"]}
    assert codes <= ROUTINE | FIRST_MOMENTS | MOVED_LEADER
    assert {row["status"] for row in one_of(name)["api_calls"]} <= {"answered", "unanswered"}
    if "witness" in about(name):  # brokers that restart begin their logs again
        assert any(line.api in {"PRODUCE", "FETCH", "CREATE_TOPICS"} for line in logged(name))


def test_the_list_of_recordings_is_up_to_date() -> None:
    assert index.page() == index.PAGE.read_text("utf-8"), "run python -m tests.broker.index"
