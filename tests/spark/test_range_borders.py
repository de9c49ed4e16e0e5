"""Where positions are cut: spans and ranges by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from kwsniff.spark import ranges as ranges_room
from kwsniff.spark.ranges import SPAN_PACKETS, _other_words, _ranges, spans_for
from kwsniff.timelines.metadata.topic_names import News


@pytest.mark.parametrize(
    ("packets", "buckets", "number", "length"),
    [
        (0, 4, 1, 1),
        (10, 4, 1, 10),
        (2 * SPAN_PACKETS - 1, 4, 1, 2 * SPAN_PACKETS - 1),
        (2 * SPAN_PACKETS, 4, 2, SPAN_PACKETS),
        (3 * SPAN_PACKETS + 1, 4, 3, SPAN_PACKETS + 1),  # all of them, rounded up
        (100 * SPAN_PACKETS, 4, 8, 100 * SPAN_PACKETS // 8),  # two for each bucket
    ],
)
def test_spans_have_a_million_packets_at_least_and_all_of_them(
    packets: int, buckets: int, number: int, length: int
) -> None:
    spans = spans_for(packets, buckets)
    assert (spans.number, spans.packets) == (number, length)
    assert spans.number * spans.packets >= packets


@pytest.mark.parametrize(
    ("rows", "borders"),
    [
        ([25, 25, 25, 25], [(0, 4)]),  # a quarter of what is worth it, or four spans' share
        ([100, 0, 0, 0], [(0, 1), (1, 4)]),
        ([0, 0, 99, 1], [(0, 4)]),
        ([25] * 8, [(0, 4), (4, 8)]),
        ([25] * 9, [(0, 4), (4, 8), (8, 9)]),
        ([25] * 4 + [24] + [26] * 3 + [5], [(0, 4), (4, 8), (8, 9)]),
    ],
)
def test_ranges_have_rows_enough_and_all_spans(
    monkeypatch: pytest.MonkeyPatch, rows: list[int], borders: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(ranges_room, "WORTH_ROWS", 100)
    assert _ranges(np.array(rows)) == borders


def test_a_topic_is_known_by_its_name_and_its_ids() -> None:
    words = _other_words([News(1, "x", "orders"), News(2, "y", "orders"), News(3, "z", "carts")])
    assert dict(words) == {
        "orders": {"#x", "#y"},
        "carts": {"#z"},
        "#x": {"orders"},
        "#y": {"orders"},
        "#z": {"carts"},
    }
