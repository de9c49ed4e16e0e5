"""Numbers of calls follow the order of packets; what a comparison asks is which calls they mean."""

from __future__ import annotations

import pyarrow as pa

from .beside import with_calls_named


def _calls(*ports: int) -> pa.Table:
    """A call of each client port, numbered in that order."""
    number = len(ports)
    return pa.table(
        {
            "call_id": pa.array(range(0, 2000 * number, 2000), pa.int64()),
            "client_address": ["127.0.0.1"] * number,
            "client_port": list(ports),
            "broker_port": [9092] * number,
            "correlation_id": [7] * number,
            "api_key": [11] * number,
        }
    )


def _group(*call_ids: int) -> pa.Table:
    return pa.table({"group_id": ["shop"], "call_ids": pa.array([call_ids], pa.list_(pa.int64()))})


def test_the_same_calls_in_another_order_are_the_same() -> None:
    before = with_calls_named(_group(0, 4000), _calls(40001, 40002, 40003))
    after = with_calls_named(_group(2000, 4000), _calls(40002, 40001, 40003))
    assert before.equals(after)


def test_other_calls_under_the_same_numbers_are_not_the_same() -> None:
    before = with_calls_named(_group(0, 4000), _calls(40001, 40002, 40003))
    after = with_calls_named(_group(0, 4000), _calls(40002, 40001, 40003))
    assert not before.equals(after)


def test_a_number_that_no_call_has_stays_one() -> None:
    assert "999" in with_calls_named(_group(0, 999), _calls(40001))["call_ids"].to_pylist()[0]
