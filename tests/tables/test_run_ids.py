"""Ids of runs: how long they may be, and that all rows have them."""

from __future__ import annotations

import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.run import add_run_id, check_run_id
from tests.tables.columns import table


@pytest.mark.parametrize(
    ("given", "is_taken"), [("x", True), ("x" * 200, True), ("x" * 201, False), ("", False), ("a\n", False)]
)
def test_an_id_has_two_hundred_characters_at_most(given: str, is_taken: bool) -> None:
    if is_taken:
        assert check_run_id(given) == given
    else:
        with pytest.raises(UsageError):
            check_run_id(given)
    assert check_run_id(None) != check_run_id(None)


@pytest.mark.parametrize("rows", [0, 1, (1 << 17) + 1])
def test_all_rows_have_it(rows: int) -> None:
    batch = Builder(load_catalog(), ENUMS).build("anomalies", table("anomalies", rows))
    found = add_run_id("anomalies", batch, "run-1")
    found.validate(full=True)
    assert found.num_rows == rows
    assert {*found["run_id"].to_pylist()} <= {"run-1"}
