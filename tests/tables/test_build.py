"""Columns of the core become Arrow arrays."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, arrow_schema
from tests.tables.columns import table


@pytest.fixture(scope="module")
def builder() -> Builder:
    return Builder(load_catalog(), ENUMS)


def built(builder: Builder, name: str, rows: int, **given: Any) -> pa.Table:
    batch = builder.build(name, table(name, rows, **given))
    batch.validate(full=True)
    plain = [field for field in arrow_schema(TABLES[name]) if field.name != RUN]
    return pa.Table.from_batches([batch]).cast(pa.schema(plain))


def test_values_and_nulls_arrive_as_they_are(builder: Builder) -> None:
    given = {
        "call_id": [5, -1, 1 << 62],
        "api_version": [0, 7, -1],
        "client_id": [b"a", None, "ü".encode()],
        "topics": [[b"t", b"u"], None, []],
        "status": ["answered", "unanswered", "answered"],
        "reason": [None, "segment_lost", None],
        "latency_ns": [None, None, 12],
    }
    rows = built(builder, "api_calls", 3, **given)
    assert rows["call_id"].to_pylist() == given["call_id"]
    assert rows["api_version"].to_pylist() == given["api_version"]
    assert rows["client_id"].to_pylist() == ["a", None, "ü"]
    assert rows["topics"].to_pylist() == [["t", "u"], None, []]
    assert rows["status"].to_pylist() == given["status"]
    assert rows["reason"].to_pylist() == given["reason"]
    assert rows["latency_ns"].to_pylist() == given["latency_ns"]


def test_booleans_arrive_as_they_are(builder: Builder) -> None:
    flags = [True, False, False, True, True, True, False, True, False, True]
    assert built(builder, "connections", 10, handshake=flags)["handshake"].to_pylist() == flags


def test_times_are_rounded_down_to_the_microsecond(builder: Builder) -> None:
    times = [1_000, 1_999, 0, -1, None]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    got = built(builder, "api_calls", 5, request_time=times)["request_time"].to_pylist()
    assert got == [*(epoch + timedelta(microseconds=us) for us in (1, 1, 0, -1)), None]


def test_apis_and_errors_get_their_names(builder: Builder) -> None:
    slots = [0, 1, 18, None, None]
    rows = built(builder, "error_codes", 5, api_name=slots, error_code=[6, 3, -1, 999, 29])
    assert rows["api_name"].to_pylist() == ["Produce", "Fetch", "ApiVersions", None, None]
    names = ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_SERVER_ERROR", None]
    assert rows["error_name"].to_pylist() == [*names, "TOPIC_AUTHORIZATION_FAILED"]
    assert rows["retriable"].to_pylist() == [True, True, False, None, False]


def test_a_call_without_response_has_no_error_name(builder: Builder) -> None:
    rows = built(builder, "api_calls", 3, error_code=[0, None, 6])
    assert rows["error_name"].to_pylist() == ["NONE", None, "NOT_LEADER_OR_FOLLOWER"]


def test_an_empty_table_is_a_table(builder: Builder) -> None:
    for name in ("api_calls", "latencies", "error_codes", "connections", "anomalies"):
        assert built(builder, name, 0).num_rows == 0


def test_texts_that_are_the_same_once_repaired_are_one_dictionary_entry(builder: Builder) -> None:
    data = list(table("latencies", 4, client_id=[b"ab", b"cd", b"ef", None]))
    place = [column.name for column in TABLES["latencies"].columns if not column.derived_from].index(
        "client_id"
    )
    kind, rows, nulls, validity, indices, *_ = data[place]
    repaired = "\ufffd\ufffdzz".encode()
    data[place] = (
        kind,
        rows,
        nulls,
        validity,
        indices,
        bytes.fromhex("00000000 03000000 06000000 08000000 08000000"),
        repaired,
        4,
    )
    column = builder.build("latencies", data)["client_id"]
    assert column.to_pylist() == ["\ufffd", "\ufffd", "zz", None]
    entries = column.dictionary.to_pylist()
    assert len(set(entries)) == len(entries)


def test_messages_of_brokers_do_not_repeat_values_that_are_not_public(builder: Builder) -> None:
    told = [
        b"Invalid value hunter2 for configuration ldap.pwd: too short",
        None,
        b"Invalid value hunter3 for configuration ldap.pwd: too short",
        b"Invalid value -7 for configuration retention.ms: at least -1",
        b"Not the leader",
    ]
    clean = "Invalid value <redacted> for configuration ldap.pwd: too short"
    rows = built(builder, "error_codes", 5, error_message=told)
    assert rows["error_message"].to_pylist() == [
        clean,
        None,
        clean,
        "Invalid value -7 for configuration retention.ms: at least -1",
        "Not the leader",
    ]
