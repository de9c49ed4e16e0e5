"""Connections that a machine in between forgot, beside the broker: it sees silence, and a newer connection.

The rows are those of a librdkafka producer behind a firewall that forgets connections after six seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.scripted import find, find_worth_asking

RULE = "idle_dropped"
SECOND = 10**6
Row = dict[str, Any]
WHO = {"client_id": "shop", "client_address": "10.0.0.1", "broker_address": "10.0.0.2", "broker_port": 9092}


def _connection(number: int, begin_s: float, end_s: float, **more: Any) -> Row:
    times = {"first_time": int(begin_s * SECOND), "last_time": int(end_s * SECOND)}
    what = {"protocol": "kafka", "handshake": True, "ending": "open", "calls": 2, "client_bytes": 9}
    return {"connection_id": number, **WHO, **times, **what, "broker_bytes": 9, **more}


def _tables(
    *,
    age_s: float = 3.2,
    opened_s: float = 114.1,
    skew_s: float = 0.0,
    ages: tuple[float, ...] = (0.1, 0.1),
    old: dict[str, Any] | None = None,
) -> dict[str, list[Row]]:
    """Records at 100 s and 100.1 s on one connection, and one on the connection that is opened later."""
    connections = [_connection(1, 99, 100.2, **(old or {})), _connection(2, opened_s, opened_s + 1)]
    tables: dict[str, list[Row]] = {"connections": connections, "api_calls": [], "record_batches": []}
    sent = [(1, 100 + number / 10, age) for number, age in enumerate(ages)] + [(2, opened_s + 0.1, age_s)]
    for number, (connection, moment_s, age) in enumerate(sent, 1):
        call = {"call_id": number, "connection_id": connection, "api_name": "Produce", "caller": "client"}
        moment = int(moment_s * SECOND)
        answer = {"status": "answered", "request_time": moment, "response_end_time": moment + 2000}
        tables["api_calls"].append({**call, **WHO, **answer})
        made = int((moment_s - age - skew_s) * SECOND)
        batch = {
            "time": moment,
            "first_timestamp": made,
            "max_timestamp": made,
            "timestamp_type": "create_time",
        }
        tables["record_batches"].append({**call, "client_id": "shop", "topic": "orders", **batch})
    return tables


def _found(**what: Any) -> list[Finding]:
    return find(RULE, _tables(**what))


@pytest.mark.parametrize("skew_s", [0, 5, -5])
def test_a_record_older_than_the_connection_it_comes_on_shows_that_the_one_before_was_dropped(
    skew_s: float,
) -> None:
    (found,) = _found(skew_s=skew_s)
    assert (found.subject, found.severity, found.blames, found.calls) == ("shop", "warning", "network", 1)
    assert found.value == pytest.approx(10.9, abs=0.05)
    assert "its next record came 3.1 s late, on a new connection" in found.text


@pytest.mark.parametrize(
    "what",
    [
        {"age_s": 0.3},  # made when the connection was there
        {"old": {"ending": "fin", "closed_by": "client"}},
        {"opened_s": 104.5, "age_s": 3.2},  # no long silence
        {"age_s": 13.5},  # it was made before the silence: the application set its timestamp, or held it back
        {"ages": (0.1, 2.5, 4.0)},  # records of all ages
        {"ages": ()},
    ],
    ids=["new", "closed", "short", "old", "any", "nothing"],
)  # fmt: skip
def test_other_new_connections_show_nothing(what: dict[str, Any]) -> None:
    assert _found(**what) == []


def test_the_rule_is_asked_where_a_connection_begins_after_a_silence() -> None:
    assert RULE in find_worth_asking(_tables())
    for what in ({"opened_s": 104.5}, {"old": {"ending": "fin"}}):
        assert RULE not in find_worth_asking({"connections": _tables(**what)["connections"]})
