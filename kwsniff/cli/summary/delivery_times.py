"""How long records take to their readers, as a list of the summary."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kwsniff.cli.text_tables import Grid
from kwsniff.texts import clean, in_percent, in_time

PART_WORDS: Final = {
    "before_wire_ns": "in the producer",
    "produce_ns": "acknowledgement",
    "replication_ns": "replication",
    "fetch_wait_ns": "waiting to be fetched",
    "fetch_ns": "response to the reader",
    "processing_ns": "until the commit",
}
_NAMES: Final = ("topic", "reader", "batches", "fetch p50", "fetch p99", "commit p50", "commit p99", "mostly")


def deliveries_grid(ways: Sequence[Mapping[str, Any]]) -> Grid:
    """One line for each topic and reader."""
    rows = [
        (
            clean(str(each["topic"])),
            clean(str(each["group_id"] or each["client_id"] or "(none)")),
            f"{each['batches']:,}",
            *(
                _time(each[name])
                for name in ("fetch_p50_ns", "fetch_p99_ns", "commit_p50_ns", "commit_p99_ns")
            ),
            _mostly(each["mostly"]),
        )
        for each in ways
    ]
    return Grid(
        "Delivery latency, from Produce to fetch and commit",
        _NAMES,
        rows,
        ("topic", "reader", "fetch p99", "mostly", "commit p99"),
    )


def _time(took: int | None) -> str:
    return "" if took is None else in_time(took)


def _mostly(most: Mapping[str, Any] | None) -> str:
    return "" if most is None else f"{in_percent(most['share'])} {PART_WORDS[most['part']]}"
