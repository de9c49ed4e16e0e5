"""Sentences of findings where something that they would name is not known, or is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.findings.scripted import find
from tests.findings.test_why import _why
from tests.house.tree import ROOT

SECOND = 10**6
AT = {"client_id": "spy", "broker_address": "10.0.0.1", "broker_port": 9092, "response_time": SECOND}


def _text(rule: str, *refusals: dict[str, Any]) -> str:
    rows = [{**AT, "call_id": number, **each} for number, each in enumerate(refusals)]
    (found,) = find(rule, {"error_codes": rows})
    return found.text


@pytest.mark.parametrize(
    ("topics", "named"),
    [((), "delegation tokens"), (("a",), "topic a"), (("c", "a", "b", "a"), "topic a, topic b, topic c")],
)
def test_what_a_client_may_not_do_is_named_where_it_is_known(topics: tuple[str, ...], named: str) -> None:
    told = [{"error_code": 29, "topic": topic, "error_name": "NO"} for topic in topics]
    said = _text("not_authorized", *(told or [{"error_code": 65, "error_name": "NO"}]))
    assert said.startswith(f"spy lacks permissions on {named}: ")


def test_a_mechanism_that_is_not_known_has_no_name() -> None:
    said = _text("sasl_mechanism_refused", {"error_code": 33, "connection_id": 1})
    assert "does not support the SASL mechanism of spy, on 1 connection." in said


def test_a_name_that_cannot_be_one_was_asked_for_one_time() -> None:
    said = _text("unknown_topic", {"error_code": 17, "topic": "a b", "error_name": "INVALID"})
    assert said.startswith("spy requested the topic a b 1 time, ")


@pytest.mark.parametrize(
    ("told", "why", "todo"),
    [
        ({"truncated": True}, "The file ends inside a packet.", "Copy the file when tcpdump has ended"),
        ({"dropped_by_kernel": 7}, "The capturing system dropped 7 packets.", "Capture with a larger buffer"),
        (
            {"truncated": True, "snaplen": 96},
            "It has at most 96 bytes of each packet. The file ends inside a packet.",
            "Capture whole packets: tcpdump -s 0. Copy the file",
        ),
        (
            {"damaged": True, "snaplen": 262_144, "dropped_by_kernel": 0},
            "The file is damaged: the rest of it was not read.",
            "Copy the file again",
        ),
    ],
)
def test_what_made_a_capture_incomplete_is_named_as_far_as_it_is_known(
    told: dict[str, Any], why: str, todo: str
) -> None:
    row = {"capture": "a.pcap", "tcp_payload_bytes": 10, "first_time": 1, "last_time": 2}
    (found,) = find("capture_incomplete", {"captures": [{**row, **told}]})
    assert found.text == f"a.pcap is incomplete. {why}"
    assert found.advice.startswith(todo)


def test_bytes_that_are_missing_are_counted_and_want_a_larger_buffer() -> None:
    capture = {"capture": "a.pcap", "tcp_payload_bytes": 750, "first_time": 1, "last_time": 2}
    connection = {
        "capture": "a.pcap",
        "protocol": "kafka",
        "client_missing_bytes": 200,
        "broker_missing_bytes": 50,
    }
    (found,) = find("capture_incomplete", {"captures": [capture], "connections": [connection]})
    assert found.text == "a.pcap is incomplete. 250 bytes of Kafka connections (25.0 %) are not in it."
    assert found.advice.startswith("Capture with a larger buffer")


def test_a_problem_without_calls_is_not_counted_in_calls(tmp_path: Path) -> None:
    capture, page = (
        ROOT / "captures" / "incidents" / "tls_to_plain_java" / "broker.pcap",
        tmp_path / "page.html",
    )
    assert _why(capture, "--html", page).stdout.startswith("1 problem; the capture has no Kafka calls.\n")
    assert "1 problem; the capture has no Kafka calls." in page.read_text()
