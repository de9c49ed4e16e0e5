"""What the summary counts, against counting by hand."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.analysis import summary as summary_room
from kwsniff.analysis.rollups.errors import Failures
from kwsniff.analysis.summary import Summary, iso_time
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.grouping import Groups
from tests.tables.columns import table


def summarise(name: str, *batches: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    builder = Builder(load_catalog(), ENUMS)
    summary = Summary()
    for rows, given in batches:
        summary.add(name, builder.build(name, table(name, rows, **given)))
    return summary.as_dict()


def test_calls_are_counted_per_api_and_version() -> None:
    dice = random.Random(1)
    batches = []
    for _ in range(3):
        rows = 500
        batches.append(
            (
                rows,
                {
                    "api_key": [dice.choice([0, 1, 1, 18, None]) for _ in range(rows)],
                    "api_version": [dice.choice([3, 9]) for _ in range(rows)],
                    "status": [dice.choice(["answered", "unanswered"]) for _ in range(rows)],
                    "reason": [dice.choice([None, "open_at_end"]) for _ in range(rows)],
                    "error_code": [dice.choice([0, 0, 3, -1, None]) for _ in range(rows)],
                    "latency_ns": [dice.choice([None, 5, 1000, 70_000]) for _ in range(rows)],
                },
            )
        )
    calls: Counter[tuple[Any, Any]] = Counter()
    errors: Counter[tuple[Any, Any]] = Counter()
    unanswered: Counter[tuple[Any, Any]] = Counter()
    latencies: dict[tuple[Any, Any], list[int]] = {}
    reasons: Counter[tuple[str, str | None]] = Counter()
    for rows, given in batches:
        for i in range(rows):
            key = given["api_key"][i], given["api_version"][i]
            calls[key] += 1
            errors[key] += (given["error_code"][i] or 0) != 0
            unanswered[key] += given["status"][i] == "unanswered"
            reasons[given["status"][i], given["reason"][i]] += 1
            if given["latency_ns"][i] is not None:
                latencies.setdefault(key, []).append(given["latency_ns"][i])
    got = summarise("api_calls", *batches)
    assert {(c["api_key"], c["api_version"]) for c in got["calls"]} == set(calls)
    for item in got["calls"]:
        key = item["api_key"], item["api_version"]
        ordered = sorted(latencies[key])
        assert item["calls"] == calls[key]
        assert item["calls_with_errors"] == errors[key]
        assert item["statuses"]["unanswered"] == unanswered[key]
        assert item["p50_ns"] == ordered[-(-len(ordered) // 2) - 1]
        assert item["max_ns"] == ordered[-1]
    assert {(s["status"], s["reason"]): s["count"] for s in got["statuses"]} == reasons


def test_errors_are_ranked_by_code_api_and_topic() -> None:
    given = {
        "error_code": [3, 3, 6, 3],
        "api_key": [1, 1, 0, 1],
        "topic": [b"a", b"a", None, b"b"],
        "topic_id": [None, None, None, None],
        "partition": [0, 7, None, 0],
    }
    got = summarise("error_codes", (4, given))["errors"]
    assert got[0] == {
        "error_code": 3,
        "error_name": "UNKNOWN_TOPIC_OR_PARTITION",
        "api_name": "Fetch",
        "topic": "a",
        "count": 2,
        "partitions": [{"partition": 0, "count": 1}, {"partition": 7, "count": 1}],
    }
    assert next(error for error in got if error["topic"] is None)["partitions"] == []
    assert {(e["error_code"], e["topic"], e["count"]) for e in got[1:]} == {(6, None, 1), (3, "b", 1)}


def test_errors_of_a_topic_named_later_are_counted_under_its_name() -> None:
    given = {"error_code": [3, 3], "api_key": [1, 1], "topic": [None, b"a"], "topic_id": [b"id", None]}
    summary = Summary()
    summary.add(
        "error_codes", Builder(load_catalog(), ENUMS).build("error_codes", table("error_codes", 2, **given))
    )
    assert {e["topic"] for e in summary.as_dict()["errors"]} == {"id", "a"}
    summary.late_topics = {"id": "a"}
    assert [(e["topic"], e["count"]) for e in summary.as_dict()["errors"]] == [("a", 2)]


def test_endless_topics_are_counted_together_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_room, "MOST_DISTINCT", 10)
    rows = 100
    given = {"error_code": [3] * rows, "api_key": [1] * rows, "topic": [b"t%d" % n for n in range(rows)]}
    got = summarise("error_codes", (rows, given))["errors"]
    assert len(got) == 11
    assert got[0]["topic"] == "(others)"
    assert got[0]["error_name"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert sum(error["count"] for error in got) == rows


def test_errors_are_a_share_of_the_calls_of_who_was_told_them() -> None:
    """Shop makes four calls to one broker, one to the other; an error of a call may stand in it twice."""
    who = {"client_id": [b"shop"] * 5 + [b"bill"], "client_address": [b"10.0.0.2"] * 5 + [b"10.0.0.3"]}
    to = {"broker_address": [b"10.0.0.1"] * 6, "broker_port": [9092] * 4 + [9093] * 2}
    calls = {"call_id": [1, 2, 3, 4, 5, 6], **who, **to}
    rows = [0, 0, 0, 3, 4]
    errors = {
        "call_id": [1, 1, 1, 4, 5],
        "error_code": [6, 6, 3, 6, 6],
        **{name: [values[row] for row in rows] for name, values in {**who, **to}.items()},
    }
    builder, summary = Builder(load_catalog(), ENUMS), Summary()
    summary.add("error_codes", builder.build("error_codes", table("error_codes", 5, **errors)))
    summary.add("api_calls", builder.build("api_calls", table("api_calls", 6, **calls)))
    got = summary.as_dict()
    shop = {"client_id": "shop", "client_address": "10.0.0.2"}
    leader = {"error_code": 6, "error_name": "NOT_LEADER_OR_FOLLOWER"}
    unknown = {"error_code": 3, "error_name": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert got["errors_by_client"] == [
        {**shop, **leader, "count": 4, "calls": 3, "share": 0.6},
        {**shop, **unknown, "count": 1, "calls": 1, "share": 0.2},
    ]
    first, second = ({"broker_address": "10.0.0.1", "broker_port": port} for port in (9092, 9093))
    assert got["errors_by_broker"] == [
        {**first, **leader, "count": 3, "calls": 2, "share": 0.5},
        {**first, **unknown, "count": 1, "calls": 1, "share": 0.25},
        {**second, **leader, "count": 1, "calls": 1, "share": 0.5},
    ]


def test_clients_beyond_the_bound_are_told_errors_together() -> None:
    rows = 30
    given = {"client_id": [b"c%d" % n for n in range(rows)], "call_id": list(range(rows))}
    builder, failures = Builder(load_catalog(), ENUMS), Failures(most=10)
    failures.add_calls(builder.build("api_calls", table("api_calls", rows, **given)))
    errors = table("error_codes", rows, error_code=[3] * rows, **given)
    failures.add_errors(builder.build("error_codes", errors))
    got = failures.as_dict()["errors_by_client"]
    assert len(got) == 11
    assert (got[0]["client_id"], got[0]["count"], got[0]["calls"], got[0]["share"]) == (
        "(others)",
        20,
        20,
        None,
    )
    assert {each["share"] for each in got[1:]} == {1.0}


def test_clients_are_counted_where_they_made_calls() -> None:
    given = {"client_id": [b"a", b"a", b"b"], "calls": [1, 2, 0], "protocol": ["kafka", "kafka", "tls"]}
    got = summarise("connections", (3, given))
    assert [(c["client_id"], c["connections"]) for c in got["clients"]] == [("a", 2)]
    assert got["connections"] == [{"protocol": "kafka", "count": 2}, {"protocol": "tls", "count": 1}]


def test_groups_tell_null_from_every_value() -> None:
    batch = pa.record_batch({"a": pa.array([0, None, 0, -1], pa.int16()), "b": ["x", "x", None, "x"]})
    groups = Groups(batch, ("a", "b"))
    assert dict(zip(groups.labels(), groups.counts(), strict=True)) == {
        (0, "x"): 1,
        (None, "x"): 1,
        (0, None): 1,
        (-1, "x"): 1,
    }


def test_iso_times_keep_nanoseconds() -> None:
    assert iso_time(1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"
    assert iso_time(-1) == "1969-12-31T23:59:59.999999999Z"


def test_rows_of_all_batches_are_counted() -> None:
    given = {"client_id": [b"a", b"a", b"b"]}
    assert summarise("connections", (3, given), (3, given))["rows"]["connections"] == 6


def test_calls_come_by_key_and_version_with_those_of_no_request_last() -> None:
    keys, versions = [1, None, 18, 0, 1], [12, None, 3, 9, 4]
    given = {"api_key": keys, "api_version": versions, "latency_ns": [None, 5, 6, 7, 8]}
    got = summarise("api_calls", (5, given))["calls"]
    assert [(each["api_key"], each["api_version"]) for each in got] == [
        (0, 9),
        (1, 4),
        (1, 12),
        (18, 3),
        (None, None),
    ]
    assert [each["max_ns"] for each in got] == [7, 8, None, 6, 5]


def test_what_occurs_most_comes_first_with_status_and_reason() -> None:
    given = {
        "api_key": [0] * 6,
        "status": ["unanswered"] * 2 + ["answered"] * 3 + ["response_not_captured"],
        "reason": ["open_at_end"] * 2 + [None] * 3 + ["segment_lost"],
    }
    got = summarise("api_calls", (6, given))["statuses"]
    assert [(each["status"], each["reason"], each["count"]) for each in got] == [
        ("answered", None, 3),
        ("unanswered", "open_at_end", 2),
        ("response_not_captured", "segment_lost", 1),
    ]


def test_a_client_hello_is_unanswered_where_all_of_the_broker_was_heard() -> None:
    """Its answer names a cipher suite; a broker that was not captured, or not whole, may have answered."""
    rows = {
        "unanswered": (True, 3, 0, None),
        "answered": (True, 3, 0, b"TLS_AES_128_GCM_SHA256"),
        "one-sided": (True, 0, 0, None),
        "lossy": (True, 3, 100, None),
        "none": (False, 3, 0, None),
        "unknown": (None, 3, 0, None),
    }
    given = {
        "tls_server_name": [name.encode() for name in rows],
        "tls_hello": [row[0] for row in rows.values()],
        "broker_packets": [row[1] for row in rows.values()],
        "broker_missing_bytes": [row[2] for row in rows.values()],
        "tls_cipher": [row[3] for row in rows.values()],
        "broker_port": [9093] * len(rows),
    }
    got = summarise("connections", (len(rows), given))
    assert got["unanswered_hellos"] == [{"broker": "unanswered", "broker_port": 9093, "connections": 1}]


def test_tls_is_counted_where_it_was_opened_too() -> None:
    given = {
        "protocol": ["tls", "kafka", "kafka"],
        "tls_version": [b"TLSv1.3", b"TLSv1.2", None],
        "tls_cipher": [b"A", b"B", None],
        "tls_server_name": [b"one.example", None, None],
        "broker_address": [b"10.0.0.1"] * 3,
        "broker_port": [9093] * 3,
    }
    got = summarise("connections", (3, given))["tls"]
    assert {(each["protocol"], each["tls_version"], each["broker"]) for each in got} == {
        ("tls", "TLSv1.3", "one.example"),
        ("kafka", "TLSv1.2", "10.0.0.1"),
    }


@pytest.mark.parametrize("distinct", [9, 10, 11])
def test_the_bound_of_distinct_values_is_exact(monkeypatch: pytest.MonkeyPatch, distinct: int) -> None:
    monkeypatch.setattr(summary_room, "MOST_DISTINCT", 10)
    given = {"client_id": [b"c%d" % n for n in range(distinct)], "calls": [1] * distinct}
    got = summarise("connections", (distinct, given))
    names = [each["client_id"] for each in got["clients"]]
    assert len(names) == min(distinct, 11)
    assert ("(others)" in names) == (distinct > 10)
