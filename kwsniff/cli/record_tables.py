"""Lists of `kwsniff why` about records: how long they take to readers, and what rebalances cost these."""

from collections.abc import Mapping, Sequence
from typing import Any

from kwsniff.cli.summary.delivery_times import PART_WORDS
from kwsniff.cli.text_tables import Grid
from kwsniff.texts import clean, in_time

Rows = Sequence[Mapping[str, Any]]


def readers_grid(rows: Rows) -> Grid:
    """How long records took from Produce to readers and their commits."""
    times = ("fetch_p50_ms", "fetch_p99_ms", "commit_p50_ms", "commit_p99_ms")
    cells = [
        (
            clean(each["topic"]),
            clean(each["reader"]),
            *(_time(each[name]) for name in times),
            f"{each['percent']} % {PART_WORDS[each['longest_part']]}",
        )
        for each in rows
    ]
    names = ("topic", "reader", "fetch p50", "fetch p99", "commit p50", "commit p99", "mostly")
    order = ("topic", "reader", "fetch p99", "mostly", "commit p99", "fetch p50", "commit p50")
    return Grid("Delivery latency, from Produce to fetch and commit", names, cells, order)


def rebalances_grid(rows: Rows) -> Grid:
    """Cause and cost of a rebalance in one line."""
    cells = [
        (
            clean(each["group_id"]),
            _count(each["generation"]),
            each["reason"],
            clean(each["reason_member"] or ""),
            clean(each["last_member"] or ""),
            _time(each["later_by_ms"]),
            f"{each['partitions']:,} for {_time(each['stopped_ms'])}",
            _count(each["fetched_again"]),
            _count(each["lag_added"]),
        )
        for each in rows
    ]
    names = (
        *("group", "generation", "trigger", "member", "last to join", "later by"),
        *("partitions stopped", "read again", "lag added"),
    )
    order = (
        *("group", "partitions stopped", "read again", "lag added", "trigger", "later by"),
        *("generation", "member", "last to join"),
    )
    return Grid("Rebalances whose partitions stopped longest", names, cells, order)


def _time(milliseconds: float | None) -> str:
    return "" if milliseconds is None else in_time(milliseconds * 1e6)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
