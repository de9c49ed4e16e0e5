"""Records stored twice and records lost: as many as readers counted, and none of their neighbours."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.findings.conftest import FindingsOf
from tests.findings.scripted import Rows, find
from tests.house.tree import ROOT

pytestmark = pytest.mark.sample_tests(11)

INCIDENTS = ROOT / "captures" / "incidents"
SECOND = 1_000_000
ALL = -1
Row = dict[str, Any]


def _report(name: str) -> dict[str, int]:
    about = tomllib.loads((INCIDENTS / name / "about.toml").read_text("utf-8"))
    return dict(about["report"])


@pytest.mark.parametrize("place", ["client", "broker"])
def test_as_many_records_are_stored_twice_as_a_reader_counted(place: str, findings_of: FindingsOf) -> None:
    counted = _report("duplicated_records")
    (row,) = (
        row
        for row in findings_of(INCIDENTS / "duplicated_records" / f"{place}.pcap")
        if row["finding"] == "duplicated_records"
    )
    assert row["value"] == counted["consumed"] - counted["produced"]
    assert (row["confidence"], row["blames"]) == ("certain", "configuration")


def test_batches_that_librdkafka_packs_anew_are_counted(findings_of: FindingsOf) -> None:
    """Its reader is the follower: the log ends at 22, and the client was told of 15 records."""
    rows = findings_of(INCIDENTS / "request_timed_out" / "broker.pcap")
    (row,) = (row for row in rows if row["finding"] == "duplicated_records")
    assert row["value"] == 22 - _report("request_timed_out")["produced"]
    assert row["confidence"] == "likely"


@pytest.mark.parametrize("name", ["lost_records", "lost_unclean"])
def test_as_many_records_are_lost_as_a_reader_missed(name: str, findings_of: FindingsOf) -> None:
    counted = _report(name)
    rows = findings_of(INCIDENTS / name / "broker.pcap")
    (row,) = (row for row in rows if row["finding"] == "lost_records")
    assert row["value"] == counted["produced"] - counted["consumed"]
    assert (row["confidence"], row["subject"]) == ("certain", "orders-0")


@pytest.mark.parametrize("name", ["healthy_idempotent", "leader_killed_in_sync"])
def test_where_a_reader_counted_each_record_once_nothing_is_said(name: str, findings_of: FindingsOf) -> None:
    counted = _report(name)
    assert counted["produced"] == counted["consumed"]
    rows = findings_of(INCIDENTS / name / "broker.pcap")
    assert {"duplicated_records", "lost_records"}.isdisjoint(row["finding"] for row in rows)


def _call(number: int, at_s: float, api: str = "Produce", **more: Any) -> Row:
    at = round(at_s * SECOND)
    return {
        "call_id": number, "connection_id": 1, "client_id": "shop", "client_address": "10.0.0.7",
        "broker_address": "10.0.0.1", "broker_port": 9092, "caller": "client", "api_name": api,
        "status": "answered", "request_time": at, "response_time": at + 900, "response_end_time": at + 1000,
        "time": at, "error_code": 0, "topic": "orders", "partition": 0, "acks": 1, **more,
    }  # fmt: skip


def _batch(number: int, at_s: float, offset: int | None, api: str = "Produce", **more: Any) -> list[Row]:
    """A call with one batch (of two records): rows of api_calls, partitions, record_batches. Checksum and
    times are those of second `made`; its last record is of second `until`."""
    made = more.pop("made", at_s)
    records, until = more.pop("records", 2), more.pop("until", made)
    numbered = more.pop("sequence", None)
    call = _call(number, at_s, api, **more)
    own = 0 if api == "Produce" else offset
    batch = {
        **call, "magic": 2, "control": False, "base_offset": own, "last_offset": (own or 0) + records - 1,
        "record_count": records, "crc": round(made * 1000 + until), "first_timestamp": round(made * SECOND),
        "max_timestamp": round(until * SECOND) + 1000, "timestamp_type": "create_time",
        "producer_id": None if numbered is None else 7, "producer_epoch": None if numbered is None else 0,
        "base_sequence": numbered,
    }  # fmt: skip
    part = {**call, "base_offset": offset, "batch_count": 1, "record_count": records}
    if call["status"] == "unanswered":
        part |= {"base_offset": None, "error_code": None}
    return [call, part, batch]


KEPT_OPEN: Row = {"first_time": 0, "last_time": 99 * SECOND, "protocol": "kafka"}


def _found(
    name: str,
    *batches: list[Row],
    brokers: int = 1,
    refused: bool = False,
    repeated_bytes: int = 0,
    more: Mapping[str, Rows] | None = None,
) -> Any:
    connections = [
        {**_call(0, 0, connection_id=number), **KEPT_OPEN, "broker_retransmitted_bytes": repeated_bytes}
        for number in (1, 2)
    ] + [REFUSED] * refused
    clusters = [{"node_id": number, "cluster_id": f"c{number}"} for number in range(brokers)]
    calls, parts, rows = zip(*batches, strict=True)
    tables: dict[str, Rows] = {
        "connections": connections,
        "brokers": clusters,
        "captures": [{"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}],
        "api_calls": calls,
        "partitions": parts,
        "record_batches": rows,
        **(more or {}),
    }
    return [(each.subject, each.value, each.confidence, each.blames) for each in find(name, tables)]


LOST: Row = {
    "status": "unanswered",
    "response_end_time": None,
    "response_time": None,
    "reason": "connection_closed",
}
TWICE = [("orders", 2.0, "certain", "configuration")]


def test_a_batch_without_a_response_that_a_reader_sees_twice_is_stored_twice() -> None:
    first = _batch(1, 1, None, **LOST)
    again = _batch(2, 3, 12, made=1, connection_id=2)
    read = _batch(3, 4, 10, "Fetch", made=1)
    assert _found("duplicated_records", first, again, read) == TWICE
    assert _found("duplicated_records", first, again) == []


def test_a_request_that_an_error_answered_after_the_append_is_stored_twice() -> None:
    first = _batch(1, 1, 10, error_code=7)
    told = {"error_codes": [first[0]]}
    assert _found("duplicated_records", first, _batch(2, 1.2, 12, made=1), more=told) == TWICE
    # the broker knew the batch
    assert _found("duplicated_records", first, _batch(2, 1.2, 10, made=1), more=told) == []


def test_an_application_that_sends_the_same_twice_stores_it_twice_itself() -> None:
    """Both are answered, one after the other; two connections at the same moment are two producers. An answer
    that the client did not get was sent again."""
    first = _batch(1, 1, 10)
    assert _found("duplicated_records", first, _batch(2, 1.01, 12, made=1)) == []
    assert _found("duplicated_records", first, _batch(2, 1.01, 12, made=1, connection_id=2)) == []
    lost = _found("duplicated_records", first, _batch(2, 2, 12, made=1, connection_id=2), repeated_bytes=60)
    assert lost == TWICE


def test_a_larger_batch_has_all_records_of_the_batches_that_failed() -> None:
    """Three batches of two records have no response; the client sends six records in one batch."""
    failed = [_batch(n, n, 8 + 2 * n, "Fetch", made=n) for n in (1, 2, 3)]
    sent = [_batch(10 + n, n, None, made=n, **LOST) for n in (1, 2, 3)]
    packed: dict[str, Any] = {"made": 1, "until": 3, "connection_id": 2}
    again = _batch(20, 5, 16, records=6, **packed)
    assert _found("duplicated_records", *sent, again, *failed) == [("orders", 6.0, "likely", "configuration")]
    # four records: those of the first two batches
    again = _batch(20, 5, 16, records=4, **packed)
    assert _found("duplicated_records", *sent, again, *failed) == [("orders", 4.0, "likely", "configuration")]


def test_batches_that_waited_on_the_old_connection_count_as_well() -> None:
    """They arrive after the larger batch that has their records."""
    read = [_batch(n, n, 12 + 2 * n, "Fetch", made=n) for n in (2, 3)]
    first = _batch(11, 1, 8)
    again = _batch(20, 5, 10, made=1, until=3, records=6, connection_id=2)
    late = [_batch(30 + n, 6, None, made=n, **LOST) for n in (2, 3)]
    found = _found("duplicated_records", first, again, *late, *read)
    assert found == [("orders", 6.0, "likely", "configuration")]


def test_a_batch_that_is_sent_again_on_its_own_is_in_no_other() -> None:
    """Times of the second are between those of the first's larger batch; it begins a larger batch itself."""
    read = [_batch(n, n, 8 + 2 * n, "Fetch", made=n) for n in (1, 2)]
    sent = [_batch(10 + n, n, None, made=n, **LOST) for n in (1, 2)]
    one = _batch(20, 5, 14, made=1, until=3, records=4, connection_id=2)
    two = _batch(21, 6, 18, made=2, until=4, records=4, connection_id=2)
    found = _found("duplicated_records", *sent, one, two, *read)
    assert found == [("orders", 4.0, "likely", "configuration")]


def test_a_sequence_at_two_offsets_is_the_brokers_error() -> None:
    once, twice = (_batch(n, n, 10 + 2 * n, "Fetch", made=1, sequence=4) for n in (1, 2))
    assert _found("duplicated_records", once, twice, repeated_bytes=60) == [
        ("orders", 2.0, "certain", "broker")
    ]
    other = _batch(2, 2, 14, "Fetch", made=1, sequence=6)
    assert _found("duplicated_records", once, other) == []


def test_a_group_that_reads_again_has_the_same_offset() -> None:
    reads = [_batch(number, number, 10, "Fetch", made=1, sequence=4) for number in (1, 2, 3)]
    assert _found("duplicated_records", *reads) == []


def test_offsets_that_get_other_records_were_lost() -> None:
    """Offsets 10 to 13 were acknowledged; another leader appends at 12."""
    old = [_batch(number, number, 8 + 2 * number) for number in (1, 2)]
    new = _batch(3, 9, 12, broker_address="10.0.0.2")
    assert _found("lost_records", *old, new) == [("orders-0", 2.0, "certain", "configuration")]
    after = _batch(3, 9, 14, broker_address="10.0.0.2")
    assert _found("lost_records", *old, after) == []


def test_what_no_broker_acknowledged_is_not_lost() -> None:
    read = _batch(1, 1, 12, "Fetch")
    assert _found("lost_records", read, _batch(2, 9, 12)) == []


UNHEARD: Row = {"acks": 0, "status": "no_response_expected", "response_end_time": None, "response_time": None}
SECOND_BROKER: Row = {"broker_address": "10.0.0.2", "connection_id": 2}
REFUSED: Row = {
    "connection_id": 3, "client_address": "10.0.0.7", "broker_address": "10.0.0.1", "broker_port": 9092,
    "first_time": round(5.2 * SECOND), "refused": True, "protocol": "empty",
}  # fmt: skip


def _found_after_a_failure(*batches: list[Row], **more: Any) -> Any:
    """The client finds broker 10.0.0.1 gone at 5.2 s."""
    return _found("lost_records", *batches, refused=True, **more)


def test_records_without_an_acknowledgement_that_a_reader_missed_were_lost() -> None:
    """Of four batches of acks=0 the last two are not in what a reader gets of the next leader."""
    sent = [_batch(n, n, None, **UNHEARD) for n in (2, 3, 4, 5)]
    later = _batch(6, 8, None, **UNHEARD, **SECOND_BROKER)
    read = [
        _batch(10 + n, 20, 2 * n, "Fetch", made=made, **SECOND_BROKER) for n, made in enumerate((2, 3, 8))
    ]
    assert _found_after_a_failure(*sent, later, *read) == [("orders-0", 4.0, "likely", "configuration")]
    # an offset that the reader did not get, as in a compacted topic, may be anybody's
    read[2] = _batch(12, 20, 5, "Fetch", made=8, **SECOND_BROKER)
    assert _found_after_a_failure(*sent, later, *read) == [("orders-0", 2.0, "possible", "configuration")]


def test_what_nobody_reads_may_be_lost_in_the_last_second() -> None:
    """Followers fetch twice a second; of what was sent before, they have had time to get it."""
    sent = [_batch(n, n, None, **UNHEARD) for n in (2, 3, 4, 5)]
    later = _batch(6, 8, None, **UNHEARD, **SECOND_BROKER)
    assert _found_after_a_failure(*sent, later) == [("orders-0", 2.0, "possible", "configuration")]
    # the same broker leads on
    assert _found_after_a_failure(*sent, _batch(6, 8, None, **UNHEARD)) == []


def test_a_leader_that_hands_over_before_it_stops_loses_nothing() -> None:
    sent = [_batch(n, n, None, **UNHEARD) for n in (2, 3, 4, 5)]
    later = _batch(6, 5.1, None, **UNHEARD, **SECOND_BROKER)
    assert _found_after_a_failure(*sent, later) == []


def test_what_a_follower_had_before_the_leader_failed_is_not_lost() -> None:
    """A follower asked for offset 12 at 4.5 s: it has 10 and 11. Metadata names another leader at 7 s."""
    sent = [_batch(n, n, 6 + 2 * n) for n in (2, 3, 4)]
    leaders = [
        {"topic": "orders", "partition": 0, "leader": leader, "first_time": at * SECOND}
        for leader, at in ((1, 0), (2, 7))
    ]
    asked = _batch(9, 4.5, 0, "Fetch", caller="replica", requested_offset=12)
    asked[2] |= {"topic": "early"}
    found = _found_after_a_failure(*sent, asked, more={"leaders": leaders})
    assert found == [("orders-0", 4.0, "possible", "configuration")]
    asked[1]["requested_offset"] = 16
    assert _found_after_a_failure(*sent, asked, more={"leaders": leaders}) == []
    assert _found_after_a_failure(*sent, more={"leaders": leaders[:1]}) == []


def test_two_clusters_have_topics_of_one_name() -> None:
    rows = _batch(1, 1, 10), _batch(2, 9, 10)
    assert _found("lost_records", *rows) != []
    assert _found("lost_records", *rows, brokers=2) == []
    assert _found("lost_records", *rows, brokers=0) == []


def test_a_topic_that_was_created_again_begins_at_zero() -> None:
    ids = [{"topic": "orders", "topic_id": each, "partition": 0, "leader": 1} for each in ("one", "two")]
    rows = _batch(1, 1, 0), _batch(2, 9, 0)
    assert _found("lost_records", *rows, more={"leaders": ids[:1]}) != []
    assert _found("lost_records", *rows, more={"leaders": ids}) == []


def test_what_the_reader_sees_of_an_acknowledged_batch_is_that_batch() -> None:
    """A compacted batch has fewer records; LogAppendTime has the broker's time."""
    sent = _batch(1, 1, 10)
    assert _found("lost_records", sent, _batch(2, 2, 10, "Fetch", made=1)) == []
    stamped = _batch(2, 2, 10, "Fetch")
    stamped[2]["timestamp_type"] = "log_append_time"
    assert _found("lost_records", sent, stamped) == []
    compacted = _batch(2, 2, 10, "Fetch")
    compacted[2]["record_count"] = 1
    assert _found("lost_records", sent, compacted) == []


def test_records_that_retention_deleted_before_a_reader_came_are_lost_to_it() -> None:
    asked = _call(1, 1, "Fetch", client_id="billing", error_code=1, requested_offset=100, group_id=None)
    next_ = _call(2, 2, "Fetch", client_id="billing", requested_offset=150, log_start_offset=150)
    refused = {**asked, "path": "error_code", "error_name": "OFFSET_OUT_OF_RANGE"}
    tables = {"error_codes": [refused], "api_calls": [asked, next_], "partitions": [asked, next_]}
    empty = _batch(9, 9, 0, "Fetch")
    assert _found("lost_records", empty, more=tables) == [("orders-0", 50.0, "certain", "configuration")]
    next_["log_start_offset"] = 90
    assert _found("lost_records", empty, more=tables) == []


@pytest.mark.parametrize(("age_days", "says"), [(0, False), (400, True)])
def test_records_that_retention_deleted_count_once_and_have_an_age(age_days: int, says: bool) -> None:
    """A reader asks for offset 10 twice and then for 15: the log begins at 20, then at 24."""
    sent = _batch(1, 1, 10, made=1 - age_days * 86_400)
    asked: Row = {"api": "Fetch", "error_code": 1, "client_id": "reader"}
    told = [_call(10 + n, 2 + n, **asked, requested_offset=at) for n, at in enumerate((10, 10, 15))]
    starts = [
        _call(20 + n, 2.5 + n, "Fetch", log_start_offset=at, requested_offset=at)
        for n, at in enumerate((20, 20, 24))
    ]
    tables: dict[str, Rows] = {
        "captures": [{"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}],
        "brokers": [{"node_id": 1, "cluster_id": "c"}],
        "api_calls": [sent[0], *told, *starts],
        "partitions": [sent[1], *told, *starts],
        "record_batches": [sent[2]],
        "error_codes": told,
    }
    (found,) = find("lost_records", tables)
    assert found.value == 14
    assert "it asked for offset 10, and the log began at 20" in found.text
    assert ("400 days old when they were written" in found.text) == says
    assert ("message.timestamp.type=LogAppendTime" in found.advice) == says
