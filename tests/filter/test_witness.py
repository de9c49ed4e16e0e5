"""DuckDB answers the same question, in SQL over the written tables: the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kwsniff
from kwsniff.filter.expression import Filter
from kwsniff.filter.filtered_calls import FilteredCalls
from kwsniff.filter.parser import parse_filter
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.filter.stored_rows import choose_stored
from kwsniff.live.filtered_rows import FilteredRows
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.view.reader import CallReader

from .expressions import Pair, Writer

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = (
    "first_steps", "transaction", "group_classic", "group_share", "sasl_scram", "snaplen_96", "three_brokers",
    "killed_broker", "versions_4_4", "begun_late", "admin_configs", "throttled",
)  # fmt: skip
PER_CAPTURE = 60


def capture_of(name: str) -> str:
    return str(next((CAPTURES / name).glob("capture.pcap*")))


class Tables:
    """The tables of a capture, and a database of them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.capture = capture_of(name)
        self.folder = folder
        kwsniff.analyze(self.capture, output=folder)
        self.database = duckdb.connect()
        self.database.execute("set TimeZone = 'UTC'")
        for table in ("api_calls", "error_codes", "captures"):
            self.database.execute(f"create view {table} as from read_parquet('{folder / table}.parquet')")
        self.rows: list[dict[str, Any]] = kwsniff.open(folder).api_calls.to_pylist()
        self.files = kwsniff.open(folder).paths

    def asked(self, sql: str) -> list[int]:
        found = self.database.execute(f"select call_id from api_calls where {sql}").fetchall()  # noqa: S608
        return sorted(call for (call,) in found)

    def pairs(self, seed: int, number: int) -> Iterator[Pair]:
        writer = Writer(seed, self.rows)
        for _ in range(number):
            yield writer.pair()


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(request.param, tmp_path_factory.mktemp(request.param))


def stored(tables: Tables, filter_: Filter) -> list[int]:
    runs = choose_stored(tables.files, filter_)
    return sorted(call for chosen in runs.values() for call in numbers_of(chosen))


def numbers_of(chosen: Chosen) -> list[int]:
    return [int(number) for number in chosen._calls]


def shown(tables: Tables, filter_: Filter) -> list[int]:
    reader = CallReader([tables.capture], selection=FilteredCalls(filter_))
    return sorted(call.id for call in reader.calls() if call.id is not None)


@pytest.mark.sample(2)
@pytest.mark.parametrize("tables", NAMES, indirect=True)
def test_random_filters_choose_what_sql_chooses(tables: Tables, random_seed: int) -> None:
    found = 0
    for pair in tables.pairs(random_seed, PER_CAPTURE):
        filter_ = parse_filter(pair.filter)
        wanted = tables.asked(pair.sql)
        assert stored(tables, filter_) == wanted, pair
        assert shown(tables, filter_) == wanted, pair
        found += 0 < len(wanted) < len(tables.rows)
    assert found > PER_CAPTURE // 30  # they are not all empty; a quarter chooses some rows, on average


@pytest.mark.sample(1)
@pytest.mark.parametrize("tables", NAMES, indirect=True)
def test_rows_as_live_has_them_are_chosen_likewise(tables: Tables, random_seed: int) -> None:
    whole = kwsniff.open(tables.folder)
    plain = {name: whole.table(name).drop_columns("run_id") for name in ("api_calls", "error_codes")}
    batches = {
        name: rows.cast(coded_schema(TABLES[name])).combine_chunks().to_batches()
        for name, rows in plain.items()
    }
    given = {name: found[0] for name, found in batches.items() if found}
    begun = min(row["first_time"] for row in whole.captures.to_pylist()).timestamp()
    for pair in tables.pairs(random_seed, PER_CAPTURE):
        chosen = FilteredRows(parse_filter(pair.filter), lambda: round(begun * 1e6) * 1000).select(given)
        found = sorted(chosen["api_calls"]["call_id"].to_pylist()) if "api_calls" in chosen else []
        assert found == tables.asked(pair.sql), pair


@pytest.fixture
def random_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run, which pytest-randomly prints."""
    return int(request.config.getoption("randomly_seed", 0) or 0)
