"""How much a lag grows by its thirds: by hand, each threshold from both sides."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kwsniff.findings.prefilter.lags import Lags

S = 1_000_000


def growth(lags: list[int], seconds: float = 30, *, sure: bool = True, **named: Any) -> int:
    return counted((lags, seconds, named)).growth(sure=sure)


def counted(*places: tuple[list[int], float, dict[str, Any]]) -> Lags:
    """Lags at equal distances over so many seconds, by group, topic and partition, from `start` on."""
    found = Lags()
    for lags, seconds, named in places:
        count = len(lags)
        begin = named.get("start", 0) * S
        times = [begin + round(seconds * S * place / max(count - 1, 1)) for place in range(count)]
        names = {"group_id": "g", "topic": "t", "topic_id": None, "partition": 0, **named}
        names.pop("start", None)
        found.add(
            pa.record_batch(
                {
                    "lag": pa.array(lags, pa.int64()),
                    "time": pa.array(times, pa.timestamp("us", "UTC")),
                    **{
                        name: pa.array([value] * count, pa.int32() if name == "partition" else pa.string())
                        for name, value in names.items()
                    },
                }
            )
        )
    return found


@pytest.mark.parametrize(
    ("lags", "grown"),
    [
        ([10, 30], 0),  # two commits
        ([10, 15, 30], 20),
        ([10, 15, 20], 10),  # twice as much
        ([10, 15, 19], 0),
        ([10, 12, 20, 21, 20, 40], 30),
        ([10, 20, 15, 16, 20, 40], 0),  # the last third begins where the first was
        ([10, 21, 15, 16, 20, 40], 0),
        ([10, 19, 15, 16, 20, 40], 30),
        # Of seven commits the first third has three, the last one two.
        ([10, 12, 25, 13, 14, 24, 40], 0),
        ([10, 12, 23, 13, 14, 24, 40], 30),
        ([10, 12, 13, 13, 1, 24, 40], 30),
        ([40, 30, 10], 0),
    ],
)
def test_a_lag_has_grown_where_its_last_third_is_above_the_first(lags: list[int], grown: int) -> None:
    assert growth(lags) == grown


@pytest.mark.parametrize(("seconds", "grown"), [(2.999999, 0), (3, 20)])
def test_it_grew_for_three_seconds(seconds: float, grown: int) -> None:
    assert growth([10, 15, 30], seconds) == grown


def test_each_group_and_partition_has_its_own() -> None:
    """Topics without a name go by their id. Together they would have grown."""
    flat, high = [10, 10, 10], [30, 30, 30]
    for other in (
        {"group_id": "h"},
        {"partition": 1},
        {"topic": "u"},
    ):
        assert counted((flat, 10, {}), (high, 30, {"start": 20, **other})).growth(sure=True) == 0
    ids = [{"topic": None, "topic_id": word} for word in ("a", "b")]
    assert counted((flat, 10, ids[0]), (high, 30, {"start": 20, **ids[1]})).growth(sure=True) == 0
    assert counted((flat, 10, ids[0]), (high, 30, {"start": 20, **ids[0]})).growth(sure=True) == 20


def test_where_the_rule_looks_at_other_rows_the_bound_is_of_all() -> None:
    assert growth([10, 5, 10], sure=False) == 5
    assert growth([10, 5, 10]) == 0
    assert Lags().growth(sure=True) == 0
