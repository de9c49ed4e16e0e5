"""When responses are overdue, whose they are, and what drops explain: by hand, from both sides."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.live.overdue_responses import (
    GRACE_NS,
    Drops,
    Overdue,
    OverdueResponses,
    Wait,
    count_overdue,
    grace_of,
    not_lost,
)

from .test_overdue_responses import wait


def late_by(late_ns: int, **changed: Any) -> Wait:
    """A call that asked for nothing longer, as seen at 100 s."""
    due = 100 * 10**9 - late_ns
    return wait(9092, 1, due - 10**9)._replace(due=due, **changed)


def counted(*waits: Wait, names: dict[str, str] | None = None) -> OverdueResponses:
    return count_overdue(100 * 10**9, waits, load_catalog(), names or {})


@pytest.mark.parametrize(("late_ns", "number"), [(GRACE_NS - 1, 0), (GRACE_NS, 1), (GRACE_NS + 1, 1)])
def test_a_response_is_overdue_from_the_grace_on(late_ns: int, number: int) -> None:
    """From when it was due, not from when it was asked for."""
    assert counted(late_by(late_ns)).total.calls == number


def test_the_oldest_response_counts_whenever_it_comes() -> None:
    second = 10**9
    overdue = counted(
        late_by(2 * second), late_by(9 * second), late_by(3 * second), late_by(5 * second, broker_port=9093)
    )
    assert (overdue.total.calls, overdue.total.oldest_ns) == (4, 9 * second)
    assert overdue.worst("brokers") == [
        ("10.0.0.1:9092", Overdue(3, 9 * second)),
        ("10.0.0.1:9093", Overdue(1, 5 * second)),
    ]
    swapped = counted(late_by(5 * second), late_by(9 * second, broker_port=9093))
    assert [name for name, _ in swapped.worst("brokers")] == ["10.0.0.1:9093", "10.0.0.1:9092"]


def test_a_topic_counts_once_under_its_name_and_a_client_without_an_id_has_one() -> None:
    overdue = counted(
        late_by(10**9, topics=("orders", "id-of-orders"), client_id=None), names={"id-of-orders": "orders"}
    )
    assert overdue.by_dimension["topics"] == {"orders": Overdue(1, 10**9)}
    assert overdue.by_dimension["clients"] == {"(none)": Overdue(1, 10**9)}


@pytest.mark.parametrize(
    ("delay_ms", "grace_ms"), [(0, 700), (1000, 700), (1100, 600), (1300, 400), (5000, 400)]
)
def test_a_tool_that_delays_packets_shortens_the_grace(delay_ms: int, grace_ms: int) -> None:
    """Within 1.7 s together, but at least 0.4 s."""
    assert grace_of(delay_ms * 10**6) == grace_ms * 10**6


def test_drops_that_may_have_held_all_responses_prove_nothing() -> None:
    """Two connections without a response and two packets dropped: both may have been them."""
    drops = Drops()
    drops.set_count(2, 100)
    two = [wait(9092, port, 95) for port in (1, 2)]
    assert not_lost(two, drops.since) == []
    assert sorted(not_lost([*two, wait(9092, 3, 95)], drops.since)) == sorted([*two, wait(9092, 3, 95)])


def test_later_calls_prove_that_earlier_ones_are_owed() -> None:
    """After the drops at 100, a third connection has no response: so the broker does not respond."""
    drops = Drops()
    drops.set_count(2, 100)
    earlier = [wait(9092, port, 90) for port in (1, 2)]
    later = wait(9092, 3, 101)
    assert sorted(not_lost([later, *earlier], drops.since)) == sorted([later, *earlier])
    assert sorted(not_lost([*earlier, later], drops.since)) == sorted([later, *earlier])
    # Without a call after the drops, nothing is proven by calls before them.
    assert not_lost([wait(9092, 3, 101), wait(9093, 1, 90)], drops.since) == [wait(9092, 3, 101)]


def test_a_call_after_the_drops_does_not_prove_one_before_them() -> None:
    """The response to the earlier one may be among the two packets."""
    drops = Drops()
    drops.set_count(2, 100)
    earlier, later = wait(9092, 1, 90), wait(9092, 3, 101)
    assert not_lost([earlier, later], drops.since) == [later]
    assert not_lost([later, earlier], drops.since) == [later]


@pytest.mark.parametrize(("moment", "number"), [(99, 5), (100, 5), (101, 3), (200, 3), (201, 0)])
def test_packets_may_have_been_dropped_up_to_when_it_was_noted(moment: int, number: int) -> None:
    drops = Drops()
    for total, now in ((2, 100), (2, 150), (5, 200)):
        drops.set_count(total, now)
    assert drops.since(moment) == number
