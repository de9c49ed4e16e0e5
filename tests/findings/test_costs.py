"""What rules cost where much is wrong: nothing sorts all calls."""

from __future__ import annotations

import pytest

from kwsniff.findings import small_tables
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import keep_small, open_tables

from .scripted import find
from .test_stretches import SECOND, _call, _capture


@pytest.fixture(autouse=True)
def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are those over many rows, however few these tables have."""
    monkeypatch.setattr(small_tables, "_BYTES", -1)


def test_a_slow_broker_is_found_without_sorting_calls() -> None:
    (rule,) = (rule for rule in load_rules() if rule.name == "broker_slow")
    with open_tables({}, [rule.query]) as database:
        keep_small(database, [rule.query])  # `renewal` puts connections in order, not calls
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
        "client_id": "shop", "client_address": "10.0.0.2", "capture_point": "broker", "first_time": 0,
        "last_time": 9 * SECOND,
    }  # fmt: skip
    tables = {
        "api_calls": calls, "latencies": calls, "connections": [connection], "captures": [_capture(0, 10)],
    }  # fmt: skip
    assert find("broker_slow", tables) == []  # 28 are fewer than 30
    more = [_call(number, number / 10, number / 10 + 0.001, 1, "Heartbeat") for number in range(31, 33)]
    tables["api_calls"] = tables["latencies"] = [*calls, *more]
    (found,) = find("broker_slow", tables)  # 4 of 30
    assert (found.calls, found.call_ids) == (4, [5, 9, 20, 22])
    assert "(4 of 30 took 50 ms or longer)" in found.text


@pytest.mark.parametrize(
    ("opening", "later", "limited"),
    [
        # one connection a second: its first call takes 1 s, as Kafka's longest delay, the next one 1 ms
        ([1.0] * 24, 0.001, "configuration"),
        ([0.2 + number / 20 for number in range(24)], 0.001, "broker"),  # a busy thread
        ([1.0] * 24, 1.0, None),  # the next call is as slow
    ],
)
def test_a_broker_that_takes_up_connections_after_a_fixed_time_limits_them(
    opening: list[float], later: float, limited: str | None
) -> None:
    """Every second connection has a second call: fewer later calls than first ones."""
    calls, connections = [], []
    for number, took in enumerate(opening):
        begin = 3.0 * number
        calls.append(_call(2 * number, begin, begin + took, number, "ApiVersions"))
        if number % 2:
            calls.append(_call(2 * number + 1, begin + 1.5, begin + 1.5 + later, number, "Metadata"))
        connections.append(
            {
                "connection_id": number, "protocol": "kafka", "broker_address": "10.0.0.1",
                "broker_port": 9092, "client_id": "shop", "client_address": "10.0.0.2",
                "capture_point": "broker", "first_time": int(begin * SECOND),
                "last_time": int((begin + 2.9) * SECOND),
            }
        )  # fmt: skip
    tables = {
        "api_calls": calls, "latencies": calls, "connections": connections, "captures": [_capture(0, 99)],
    }  # fmt: skip
    (found,) = find("broker_slow", tables)
    assert ("It takes up new connections late" in found.text) == (limited is not None)
    assert found.blames == (limited or "broker")


def test_records_that_go_round_for_long_are_counted_once_for_each_time() -> None:
    """Two members get the same record in turns, and say nothing of it. Pairs of all who ever had
    it would be 50 million, which is more than rules may take."""
    turns = 10_000
    calls, batches = [], []
    for number in range(turns):
        member = f"member-{number % 2}"
        row = _call(number, number, number + 0.01, 1 + number % 2, "ShareFetch")
        calls.append({**row, "client_id": member, "member_id": member, "group_id": "share"})
        batches.append({
            "call_id": number, "connection_id": 1 + number % 2, "api_name": "ShareFetch", "topic": "orders",
            "partition": 0, "base_offset": 7,
        })  # fmt: skip
    tables = {"api_calls": calls, "record_batches": batches, "captures": [_capture(0, turns)]}
    found = find("share_lock_expired", tables)
    # Every turn but the last ends with the record going to the other one.
    handed = {each.parties["client"]: (each.value, each.calls) for each in found}
    assert handed == {"member-0": (turns / 2, turns / 2), "member-1": (turns / 2 - 1, turns / 2 - 1)}


def test_who_spoke_of_records_in_time_has_not_lost_them() -> None:
    """One member acknowledges before the other gets the record again, the next time it does not."""
    rows = [
        _call(1, 0, 0.01, 1, "ShareFetch"), _call(2, 1, 1.01, 1, "ShareAcknowledge"),
        _call(3, 2, 2.01, 2, "ShareFetch"), _call(4, 3, 3.01, 1, "ShareFetch"),
    ]  # fmt: skip
    calls = [{**row, "client_id": f"member-{row['connection_id']}", "group_id": "share"} for row in rows]
    batches = [
        {"call_id": number, "connection_id": connection, "api_name": "ShareFetch", "topic": "orders",
         "partition": 0, "base_offset": 7}
        for number, connection in ((1, 1), (3, 2), (4, 1))
    ]  # fmt: skip
    tables = {"api_calls": calls, "record_batches": batches, "captures": [_capture(0, 4)]}
    (found,) = find("share_lock_expired", tables)
    assert (found.parties["client"], found.value, found.call_ids) == ("member-2", 1, [3, 4])


def test_a_broker_that_refuses_meanwhile_hung_up_on_nobody() -> None:
    """A connection is cut off, and another refused: before, within ten seconds, after."""
    call = {
        **_call(1, 10, None, 1, "Metadata"), "reason": "connection_closed", "request_frame": 5,
        "request_end_frame": 5, "api_key": 3, "api_version": 12,
    }  # fmt: skip
    broker = {"protocol": "kafka", "broker_address": "10.0.0.1", "broker_port": 9092, "client_id": "shop"}
    closed = {
        **broker, "connection_id": 1, "closed_by": "broker", "close_frame": 6, "handshake": True,
        "ending": "fin", "broker_bytes": 100, "first_time": 9 * SECOND, "last_time": 10 * SECOND,
    }  # fmt: skip
    for at, found in ((8.9, 1), (9, 0), (15, 0), (20, 0), (20.1, 1)):
        others = [{**broker, "connection_id": 2, "refused": True, "first_time": int(at * SECOND)}]
        # One of long before, which is not the last.
        others.append({**broker, "connection_id": 3, "refused": True, "first_time": SECOND})
        tables = {"api_calls": [call], "connections": [closed, *others], "captures": [_capture(0, 30)]}
        assert len(find("broker_hangs_up", tables)) == found, at


def test_syns_to_a_silent_address_are_counted_once_however_many_clients_are_where_they_came_from() -> None:
    """Two clients of one host talk to two brokers each; three SYNs went to a third one."""
    host = {"client_address": "10.0.0.2", "broker_port": 9092, "protocol": "kafka"}
    talking = [
        {**host, "connection_id": number, "client_id": f"shop-{number % 2}", "broker_bytes": 100,
         "broker_packets": 2, "broker_address": f"10.0.0.{20 + number // 2}", "client_bytes": 100}
        for number in range(4)
    ]  # fmt: skip
    silent = {
        **host, "connection_id": 9, "protocol": "empty", "broker_address": "10.0.0.30", "broker_packets": 0,
        "client_bytes": 0, "broker_bytes": 0, "syn_retries": 2, "first_frame": 7,
        "first_time": SECOND, "last_time": 4 * SECOND,
    }  # fmt: skip
    told = {**_call(1, 0.1, 0.2, 1, "Metadata"), "client_address": "10.0.0.2", "response_time": SECOND // 5}
    named = {"host": "10.0.0.30", "port": 9092, "node_id": 3, "first_call_id": 1}
    tables = {"connections": [*talking, silent], "api_calls": [told], "brokers": [named]}
    (found,) = find("advertised_unreachable", tables)
    assert (found.subject, found.value, found.frames) == ("10.0.0.30:9092", 3, [7])
    assert found.text.startswith("10.0.0.2 tried to reach 10.0.0.30:9092, ")
    assert "(3 SYNs)" in found.text


def test_everybody_who_took_a_transactional_id_is_named() -> None:
    """Three producers take it in turns, and each is fenced by the next."""
    turns = [
        {**_call(number, 2 * number, 2 * number + 0.01, number, "InitProducerId"), "transactional_id": "till"}
        for number in range(3)
    ]
    calls = [{**each, "client_id": f"till-{each['call_id']}"} for each in turns]
    fenced = [
        {"transactional_id": "till", "client_id": f"till-{number}", "outcome": "fenced", "calls": 1,
         "begin_time": (2 * number + 1) * SECOND, "end_time": (2 * number + 3) * SECOND}
        for number in range(2)
    ]  # fmt: skip
    (found,) = find("producer_fenced", {"api_calls": calls, "transactions": fenced})
    assert (found.value, found.call_ids) == (2, [0, 1, 2])
    assert "another producer (till-1, till-2) called InitProducerId " in found.text
