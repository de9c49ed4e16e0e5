"""Connections as rows, and what a rule finds in them. Times are microseconds."""

from __future__ import annotations

from typing import Any

from kwsniff.findings.finding import Finding
from tests.findings.scripted import Rows, find, find_worth_asking

SECOND = 10**6
CLIENT, OTHER = "10.0.0.1", "10.0.0.9"
NONE = {
    f"{side}_{what}": 0 for side in ("client", "broker") for what in ("missing_bytes", "retransmitted_bytes")
}


def connection(number: int, begin_s: float, end_s: float | None = None, **more: Any) -> dict[str, Any]:
    """Opened by its client, with nothing said on it; open at the end unless `end` says how it ended."""
    row = {
        "connection_id": number,
        "first_frame": number,
        "client_address": CLIENT,
        "client_port": 50_000 + number,
        "broker_address": "10.0.0.2",
        "broker_port": 9092,
        "protocol": "empty",
        "handshake": True,
        "refused": False,
        "syn_retries": 0,
        "client_packets": 2,
        "broker_packets": 1,
        "client_bytes": 0,
        "broker_bytes": 0,
        "calls": 0,
        "ending": "open",
        "port_named": False,
        "first_time": int(begin_s * SECOND),
        "last_time": int((begin_s if end_s is None else end_s) * SECOND),
        **NONE,
    }
    if row["ending"] != more.get("ending", "open"):
        more.setdefault("close_time", row["last_time"])
        more.setdefault("close_frame", number)
    return row | more


def silent(number: int, begin_s: float, retries: int = 2, **more: Any) -> dict[str, Any]:
    """A SYN that nobody answers."""
    begun = {"broker_packets": 0, "client_packets": 1 + retries, "syn_retries": retries, "handshake": True}
    return connection(number, begin_s, begin_s + retries, **{**begun, **more})


def kafka(number: int, begin_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    """A connection on which Kafka was spoken."""
    spoken = {"protocol": "kafka", "client_id": "shop", "client_bytes": 100, "broker_bytes": 100, "calls": 1}
    return connection(number, begin_s, end_s, **{**spoken, **more})


def unheard(number: int, begin_s: float, age_ms: float = 5, **more: Any) -> dict[str, Any]:
    """Accepted, and closed by the broker without a byte."""
    return connection(
        number, begin_s, begin_s + age_ms / 1000, **{"ending": "fin", "closed_by": "broker", **more}
    )


def call(number: int, asked_s: float, answered_s: float | None = None, **more: Any) -> dict[str, Any]:
    """A call of shop, on the connection of its number unless that is said."""
    row = {
        "call_id": number,
        "connection_id": number,
        "client_address": CLIENT,
        "client_id": "shop",
        "broker_address": "10.0.0.2",
        "broker_port": 9092,
        "api_name": "Fetch",
        "api_key": 1,
        "api_version": 12,
        "request_time": int(asked_s * SECOND),
        "request_frame": number,
        "request_end_frame": number,
        "status": "answered",
    }
    if answered_s is None:
        row |= {"status": "unanswered", "reason": "connection_reset"}
    else:
        row |= {"response_time": int(answered_s * SECOND), "response_end_time": int(answered_s * SECOND)}
    return row | more


def judge(rule: str, connections: Rows, seconds: float = 60, **tables: Rows) -> list[Finding]:
    """What a rule finds in a capture that is so long. Where it finds something, the figures ask for it."""
    capture = {"capture": "a.pcap", "first_time": 0, "last_time": int(seconds * SECOND)}
    rows = [{"capture": "a.pcap", **row} for row in connections]
    given = {"connections": rows, "captures": [capture], **tables}
    found = find(rule, given)
    assert not found or rule in find_worth_asking(given)
    return found
