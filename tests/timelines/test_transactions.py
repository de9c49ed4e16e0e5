"""Transactions: scripted ones, and those that Kafka's own brokers took part in."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.pipeline.compare import analyzed, analyzed_packets, capture_of, moment
from tests.pipeline.test_recorded import CAPTURES, about
from tests.traffic import transactions
from tests.traffic.exchange import Exchange
from tests.traffic.messages import produce
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene, Script
from tests.traffic.transactions import Identity

Row = dict[str, Any]
EPOCH_NS = 1_700_000_000 * 10**9
TILL = Identity("till-7", 4000, 0)
RECORDS = {"orders": {0: batch([b"one", b"two"]), 1: batch([b"three"])}}


def written(number: int, who: Identity = TILL, records: Any = RECORDS, **more: Any) -> Exchange:
    return produce(9, number, records, transactional_id=who.transactional_id, client_id=who.client_id, **more)


class Till:
    """Producers that talk to a coordinator and to a leader, each on two connections. Milliseconds."""

    def __init__(self) -> None:
        self.scene = Scene()
        self._scripts: dict[tuple[str, bool], Script] = {}
        self._ports = itertools.count(50_000)

    def say(self, exchange: Exchange, at: float, answer: float | None = None) -> None:
        key = exchange.client_id or "", exchange.api_key == 0
        if key not in self._scripts:
            broker = Endpoint("10.1.0.92", 9092 + key[1])
            client = Endpoint("10.1.0.7" if key[0] == "till" else "10.1.0.8", next(self._ports))
            self._scripts[key] = self.scene.connection(client, broker)
            self._scripts[key].open(at=int(at * MILLISECOND) - MILLISECOND // 2)
        when = None if answer is None else int(answer * MILLISECOND)
        self._scripts[key].call(exchange, at=int(at * MILLISECOND), answer_at=when)

    def lose_coordinator(self, client_id: str, at: float) -> None:
        self._scripts.pop((client_id, False)).reset(at=int(at * MILLISECOND))

    def rows(self, folder: Path) -> list[Row]:
        return list(analyzed_packets(folder, self.scene.packets())["transactions"])


def at(milliseconds: float) -> Any:
    return moment(EPOCH_NS + int(milliseconds * MILLISECOND))


def assert_row(row: Row, **expected: Any) -> None:
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_from_its_first_partition_to_its_end(
    tmp_path: Path, version: int, committed: bool
) -> None:
    till = Till()
    till.say(transactions.init(version, 1, TILL), 10, 11)
    till.say(transactions.add_partitions(version, 2, TILL, {"orders": [0, 1]}), 20, 22)
    till.say(written(1), 23, 25)
    till.say(transactions.add_offsets(version, 3, TILL, "billing"), 26, 27)
    till.say(transactions.commit_offsets(4, TILL, "billing", "orders", 17), 28, 29)
    till.say(written(2), 30, 33)
    till.say(transactions.end(version, 5, TILL, committed=committed), 40, 47.5)
    (row,) = till.rows(tmp_path)
    assert_row(
        row,
        transactional_id="till-7",
        producer_id=4000,
        producer_epoch=0,
        client_id="till",
        begin_time=at(20),
        end_time=at(47.5),
        duration_ns=27_500_000,
        outcome="committed" if committed else "aborted",
        topics=["orders"],
        partition_count=2,
        group_id="billing",
        calls=6,
        record_count=6,
        record_bytes=2 * sum(map(len, RECORDS["orders"].values())),
        error_count=0,
        error_code=None,
    )


def test_without_add_partitions_the_first_produce_is_the_beginning(tmp_path: Path) -> None:
    till = Till()
    till.say(transactions.init(4, 1, TILL), 10, 11)
    for number, start in ((1, 20), (2, 100)):
        till.say(written(number), start, start + 1)
        till.say(transactions.end(3, number + 1, TILL, committed=True), start + 10, start + 12)
    first, second = till.rows(tmp_path)
    assert_row(first, begin_time=at(20), end_time=at(32), partition_count=2, calls=2, producer_id=4000)
    assert_row(second, begin_time=at(100), end_time=at(112), calls=2)


@pytest.mark.parametrize("first", [0, 1])
def test_partitions_of_a_transaction_are_those_of_its_largest_produce(tmp_path: Path, first: int) -> None:
    """Two calls may write to the same partitions: their sum would count them twice."""
    till = Till()
    for number in (1, 2):
        records = RECORDS if (number == 1) == (first == 0) else {"orders": {0: batch([b"four"])}}
        till.say(written(number, records=records), 20 * number, 20 * number + 1)
    till.say(transactions.end(3, 3, TILL, committed=True), 60, 61)
    (row,) = till.rows(tmp_path)
    assert_row(row, partition_count=2, record_count=4, calls=3)


def test_partitions_that_are_added_bit_by_bit_are_all_counted(tmp_path: Path) -> None:
    """AddPartitionsToTxn names each partition once."""
    till = Till()
    till.say(transactions.add_partitions(3, 1, TILL, {"orders": [0, 1]}), 20, 21)
    till.say(transactions.add_partitions(3, 2, TILL, {"returns": [0]}), 22, 23)
    till.say(transactions.end(3, 3, TILL, committed=True), 60, 61)
    (row,) = till.rows(tmp_path)
    assert_row(row, partition_count=3, topics=["orders", "returns"])


def test_retries_of_an_end_are_part_of_it(tmp_path: Path) -> None:
    till = Till()
    till.say(written(1), 20, 21)
    till.say(transactions.end(3, 2, TILL, committed=True, error=51), 30, 31)
    till.say(transactions.end(3, 3, TILL, committed=True), 40, 41)
    till.say(transactions.end(3, 4, TILL, committed=True), 42, 43)
    (row,) = till.rows(tmp_path)
    assert_row(row, outcome="committed", end_time=at(41), calls=4, error_count=1, error_code=51)
    assert row["error_name"] == "CONCURRENT_TRANSACTIONS"


def test_a_producer_that_begins_anew_aborts_what_was_open(tmp_path: Path) -> None:
    till = Till()
    till.say(written(1), 20, 21)
    till.say(transactions.init(4, 2, replace(TILL, epoch=1)), 30, 32)
    (row,) = till.rows(tmp_path)
    assert_row(row, outcome="aborted", end_time=at(32))


def test_another_producer_with_the_same_id_fences(tmp_path: Path) -> None:
    till = Till()
    other = Identity("till-7", 4000, 1, client_id="other")
    till.say(transactions.init(4, 1, TILL), 10, 11)
    till.say(written(1), 20, 21)
    till.say(transactions.init(4, 1, other), 30, 32)
    till.say(written(2, errors={("orders", 0): 47, ("orders", 1): 47}), 40, 41)
    till.say(transactions.end(3, 2, TILL, committed=True, error=90), 50, 51)
    till.say(written(1, other), 60, 61)
    till.say(transactions.end(3, 2, other, committed=True), 70, 71)
    old, new = till.rows(tmp_path)
    assert_row(old, outcome="fenced", client_id="till", begin_time=at(20), end_time=at(32), producer_epoch=0)
    assert_row(old, calls=3, error_count=2, error_code=47)
    assert_row(new, outcome="committed", client_id="other", begin_time=at(60), producer_epoch=1, calls=2)


def test_an_error_that_says_fenced_ends_it(tmp_path: Path) -> None:
    till = Till()
    till.say(transactions.add_partitions(3, 1, TILL, {"orders": [0]}), 20, 21)
    till.say(transactions.end(3, 2, TILL, committed=True, error=90), 30, 31)
    (row,) = till.rows(tmp_path)
    assert_row(row, outcome="fenced", end_time=at(31), error_code=90, error_name="PRODUCER_FENCED")


@pytest.mark.parametrize(
    ("age_ms", "error", "outcome", "finding"),
    [
        (59_000, 90, "fenced", "producer_fenced"),  # by whom, the capture does not show
        (61_000, 90, "timed_out", "transaction_timed_out"),
        (59_000, 48, "unknown", "persistent_error"),
        (61_000, 48, "timed_out", "transaction_timed_out"),  # INVALID_TXN_STATE, as brokers since KIP-890 say
    ],
)
def test_only_one_that_outlived_its_timeout_is_found_to_have_timed_out(
    tmp_path: Path, age_ms: int, error: int, outcome: str, finding: str
) -> None:
    till = Till()  # InitProducerId asks for 60 s
    till.say(transactions.init(4, 1, TILL), 10, 11)
    till.say(transactions.add_partitions(3, 2, TILL, {"orders": [0]}), 20, 21)
    till.say(transactions.end(3, 3, TILL, committed=True, error=error), 20 + age_ms, 21 + age_ms)
    result = kwsniff.analyze(capture_of(tmp_path / "capture.pcap", till.scene.packets()))
    assert result.transactions["outcome"].to_pylist() == [outcome]
    (found,) = (row for row in result.findings.to_pylist() if row["finding"] != "client_silent")
    assert (found["finding"], found["blames"]) == (finding, "client")
    assert found["confidence"] == {"producer_fenced": "possible", "transaction_timed_out": "likely"}.get(
        finding, "certain"
    )


def test_what_the_capture_does_not_show_is_not_guessed(tmp_path: Path) -> None:
    till = Till()
    till.say(transactions.end(3, 1, TILL, committed=True), 10, 12)
    till.say(written(1), 20, 21)
    till.say(transactions.end(3, 2, TILL, committed=False).unanswered(), 30)
    till.lose_coordinator("till", 35)
    till.say(written(2), 12_000, 12_001)  # a reset is believed after 10 s
    ends = [(row["begin_time"], row["end_time"], row["outcome"]) for row in till.rows(tmp_path)]
    assert ends == [
        (None, at(12), "committed"),
        (at(20), None, "unknown"),
        (at(12_000), None, "open_at_end"),
    ]


def test_an_end_whose_connection_was_reset_is_not_the_next_one_s(tmp_path: Path) -> None:
    """The row of an unanswered call comes when its reset is believed: others have ended by then."""
    till = Till()
    till.say(written(1), 10, 11)
    till.say(transactions.end(3, 2, TILL, committed=True).unanswered(), 20)
    till.lose_coordinator("till", 25)
    till.say(transactions.end(3, 3, TILL, committed=True), 30, 31)
    till.say(written(2), 40, 41)
    first, second = till.rows(tmp_path)
    assert_row(first, outcome="committed", begin_time=at(10), end_time=at(31), calls=3)
    assert_row(second, outcome="open_at_end", begin_time=at(40), end_time=None, calls=1)


def test_brokers_that_ask_about_partitions_are_no_producers(tmp_path: Path) -> None:
    """Since KIP-890 leaders verify with AddPartitionsToTxn 4 that a transaction is open."""
    from tests.traffic.exchange import Facts, exchange
    from tests.traffic.wire import Encoder

    request = Encoder(True).count(1).string("till-7").i64(4000).i16(0).i8(1).count(1).string("orders")
    request.count(1).i32(0).tags().tags().tags()
    response = Encoder(True).i32(0).i16(0).count(1).string("till-7").count(1).string("orders")
    response.count(1).i32(0).i16(0).tags().tags().tags().tags()
    till = Till()
    till.say(exchange((24, 4, 9, "broker-1"), request.data, response.data, Facts()), 20, 21)
    assert till.rows(tmp_path) == []


def recorded(name: str) -> list[Row]:
    return list(analyzed(CAPTURES / name / about(name)["file"])["transactions"])


def test_the_recorded_transactions_ended_as_their_talk_ends_them() -> None:
    first, second = recorded("transaction")
    for row, outcome in ((first, "committed"), (second, "aborted")):
        assert_row(
            row,
            transactional_id="till-7",
            outcome=outcome,
            topics=["orders"],
            partition_count=1,
            calls=3,
            record_count=1,
            error_count=0,
        )
        assert row["duration_ns"] > 0
    assert first["end_time"] < second["begin_time"]


@pytest.mark.parametrize("name", ["transactions", "transactions_3_9"])
def test_transactions_with_kafkas_own_brokers(name: str) -> None:
    """The talk copies in one transaction (with the group's offsets), aborts one, and commits one more."""
    rows = sorted(
        (row for row in recorded(name) if row["transactional_id"] == "till-7"),
        key=lambda row: row["begin_time"],
    )
    assert [row["outcome"] for row in rows] == ["committed", "aborted", "committed"]
    assert [row["group_id"] for row in rows] == ["accounts", None, None]
    assert [row["record_count"] for row in rows] == [2, 1, 1]
    ends = Counter(row["outcome"] for row in recorded(name))
    assert ends["open_at_end"] == ends["unknown"] == 0


def test_the_recorded_zombie_is_fenced() -> None:
    rows = [row for row in recorded("transactions") if row["transactional_id"] == "till-8"]
    assert {row["outcome"] for row in rows} == {"fenced"}
    assert {row["client_id"] for row in rows} == {"old"}
    assert rows[0]["producer_epoch"] == 0
