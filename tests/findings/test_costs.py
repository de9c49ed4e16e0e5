"""What rules cost where much is wrong: nothing sorts all calls."""

from __future__ import annotations

from kwsniff.findings.rule import load_rules
from kwsniff.findings.tables import open_tables

from .test_stretches import SECOND, _call, _capture, _find


def test_a_slow_broker_is_found_without_sorting_calls() -> None:
    (rule,) = (rule for rule in load_rules() if rule.name == "broker_slow")
    with open_tables({}, [rule.query]) as database:
        # `call_ids` and the quantile are aggregates, which keep a bounded number of rows and one column.
        plan = database.execute(f"explain {rule.query}", rule.floors).fetchall()
    operators = " ".join(text for _, text in plan).lower()
    assert "aggregate" in operators
    assert "window" not in operators


def test_the_first_call_of_each_api_at_a_broker_does_not_count() -> None:
    """31 calls, of which the first of each API is not looked at: 4 of 28 took long, which are too few."""
    calls = []
    for number in range(31):
        api = ("Metadata", "Heartbeat", "ApiVersions")[number % 3]
        slow = number in (0, 1, 2, 5, 9, 20, 22)  # the first three warm caches
        calls.append(_call(number, number / 10, number / 10 + (0.08 if slow else 0.001), 1, api))
    connection = {
        "connection_id": 1, "protocol": "kafka", "broker_address": "10.0.0.1", "broker_port": 9092,
        "client_id": "shop", "client_address": "10.0.0.2", "vantage": "broker", "first_time": 0,
        "last_time": 9 * SECOND,
    }  # fmt: skip
    tables = {
        "api_calls": calls, "latencies": calls, "connections": [connection], "captures": [_capture(0, 10)],
    }  # fmt: skip
    assert _find("broker_slow", tables) == []  # 28 are fewer than 30
    more = [_call(number, number / 10, number / 10 + 0.001, 1, "Heartbeat") for number in range(31, 33)]
    tables["api_calls"] = tables["latencies"] = [*calls, *more]
    (found,) = _find("broker_slow", tables)  # 4 of 30
    assert (found.calls, found.call_ids) == (4, [5, 9, 20, 22])
    assert "(4 of 30 took 50 ms or longer)" in found.text
