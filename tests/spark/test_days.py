"""Which days of a stream stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kwsniff.errors import UsageError
from kwsniff.spark.compaction import Rules, _first_day
from kwsniff.spark.parts import NO_DATE


def first_day(keep: int | None, *days: str) -> str | None:
    return _first_day({("api_calls", day): ["x"] for day in days}, keep)


@pytest.mark.parametrize(
    ("keep", "first"), [(1, "2024-03-01"), (2, "2024-02-29"), (3, "2024-02-28"), (None, None)]
)
def test_so_many_days_stay_with_the_last_that_has_rows(keep: int | None, first: str | None) -> None:
    """Of a leap year."""
    assert first_day(keep, "2024-03-01", "2024-02-01", NO_DATE) == first


def test_rows_without_a_time_are_of_no_day() -> None:
    assert first_day(1, NO_DATE) is None


def test_a_day_ahead_of_this_machine_counts_and_one_of_the_future_does_not() -> None:
    today = datetime.now(UTC).date()
    tomorrow, later = str(today + timedelta(days=1)), str(today + timedelta(days=3))
    assert first_day(1, "2024-03-01", "2100-01-01") == "2024-03-01"
    assert first_day(1, "2024-03-01", later) == "2024-03-01"
    assert first_day(1, "2024-03-01", tomorrow) == tomorrow


@pytest.mark.parametrize("given", [{"compact": 1}, {"compact": 0}, {"keep": 0}, {"keep": -1}])
def test_rules_that_make_no_sense_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Rules(**given)
    assert Rules(compact=2, keep=1)
