"""What filters mean, by hand: values, nulls, lists, case, edges; and what errors say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.errors import UsageError
from kwsniff.filter.attributes import load_attributes
from kwsniff.filter.error_rows import ErrorRows
from kwsniff.filter.expression import Filter
from kwsniff.filter.parser import parse_filter
from kwsniff.tables.schema import TABLES, arrow_schema, coded_schema
from kwsniff.zones import parse_zone

FIRST = datetime(2026, 11, 20, 22, 6, 53, 500_000, UTC)
FIRST_NS = int(FIRST.timestamp() * 1e6) * 1000

ROWS: tuple[Mapping[str, Any], ...] = (
    {
        "call_id": 1, "client_id": "shop-1", "api_key": 0, "api_name": "Produce", "latency_ns": 100_000_000,
        "topics": ["orders"], "request_time": FIRST, "request_bytes": 1_000_000, "error_count": 0,
        "error_code": 0,
        "acks": -1, "status": "answered", "throttle_time_ms": 1500,
    },
    {
        "call_id": 2, "client_id": "Shop-2", "api_key": 1, "api_name": "Fetch", "latency_ns": 100_000_001,
        "topics": ["carts", "orders"], "request_time": datetime(2026, 11, 20, 22, 6, 54, 500_000, UTC),
        "request_bytes": 1_000_001, "error_count": 2, "error_code": 3, "status": "answered",
    },
    {
        "call_id": 3, "client_id": "it's 100%", "api_key": 1, "api_name": "Fetch", "topics": [],
        "request_time": datetime(2026, 11, 20, 22, 7, tzinfo=UTC), "status": "unanswered", "request_bytes": 7,
    },
    {"call_id": 4, "status": "response_only", "committed": True},
    {"call_id": 5, "client_id": "", "committed": False, "api_key": 26, "api_name": "EndTxn",
    "status": "answered"},
)  # fmt: skip
ERRORS = ({"call_id": 2, "error_code": 3}, {"call_id": 2, "error_code": 6})


def chosen(text: str, *, coded: bool = False, zone: str = "UTC") -> list[int]:
    schema = arrow_schema(TABLES["api_calls"])
    rows = pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in ROWS], schema)
    if coded:
        rows = rows.select(coded_schema(TABLES["api_calls"]).names).cast(coded_schema(TABLES["api_calls"]))
    (batch,) = rows.combine_chunks().to_batches()
    filter_ = parse_filter(text, parse_zone(zone)).resolve(FIRST_NS)
    errors = ErrorRows(
        [
            pa.RecordBatch.from_pylist(
                list(ERRORS), pa.schema({"call_id": pa.int64(), "error_code": pa.int16()})
            )
        ]
    )
    sliced = [filter_.rows(batch.slice(at, 2), errors).tolist() for at in (0, 2, 4)]
    whole = filter_.rows(batch, errors).tolist()
    assert [one for part in sliced for one in part] == whole
    return [row["call_id"] for row, one in zip(ROWS, whole, strict=True) if one]


CASES = {
    "call_id = 3": [3],
    "call_id != 3": [1, 2, 4, 5],
    "call_id <> 3 AND call_id == 4": [4],
    "call_id in (1, 2.5, 4)": [1, 4],
    "call_id > 2.5": [3, 4, 5],
    "call_id < 99999999999999999999": [1, 2, 3, 4, 5],
    "call_id > -99999999999999999999": [1, 2, 3, 4, 5],
    "call_id > 99999999999999999999": [],
    "acks = -1": [1],
    # null: neither true nor false
    "acks != -1": [],
    "not acks = -1": [],
    "acks = -1 or not acks = -1": [1],
    "acks is null": [2, 3, 4, 5],
    "acks IS NOT NULL": [1],
    "not (acks = -1 and call_id < 3)": [3, 4, 5],
    "acks = -1 or call_id = 4": [1, 4],
    "latency != 1ns or call_id > 3": [1, 2, 4, 5],
    "client_id not in (nobody)": [1, 2, 3, 5],
    "client_id is null": [4],
    # texts
    "client_id = shop-1": [1],
    "client_id = 'SHOP-1'": [],
    "client_id ~ 'SHOP'": [1, 2],
    "client_id !~ shop": [3, 5],
    "client_id like 'shop%'": [1],
    "client_id like '_hop-_'": [1, 2],
    "client_id not like '%'": [],
    "client_id like '%-%-%'": [],
    "client_id = 'it''s 100%'": [3],
    "client_id = \"it's 100%\"": [3],
    "client_id ~ '0%'": [3],
    "client_id = ''": [5],
    "client_id < 'b'": [2, 5],
    "client_id >= 'shop-1'": [1],
    "api_name=Fetch": [2, 3],
    "CLIENT_ID = shop-1": [1],
    # lists: one of them
    "topic = orders": [1, 2],
    "topics = orders": [1, 2],
    "topic in (orders, carts)": [1, 2],
    "topic != orders": [3],
    "topic not in (carts)": [1, 3],
    "topic = carts and topic = orders": [2],
    "topic like 'ord%'": [1, 2],
    "topic ~ CART": [2],
    "topics is null": [4, 5],
    # durations, sizes
    "latency > 100ms": [2],
    "latency >= 100ms": [1, 2],
    "latency = 0.1s": [1],
    "latency <= 100000us": [1],
    "latency > 100 ms and call_id > 0": [2],
    "latency_ns = 100000001": [2],
    "throttle_time = 1s500ms": [1],
    "throttle_time_ms >= 1.5s": [1],
    "throttle_time_ms > 1499": [1],
    "request_bytes > 1MB": [2],
    "request_bytes >= 1MB": [1, 2],
    "request_bytes = 1000kB": [1],
    "request_bytes < 1KiB": [3],
    # times
    "request_time = '2026-11-20 22:06:53.5'": [1],
    "request_time >= '2026-11-20 22:06:54.5'": [2, 3],
    "request_time > '2026-11-20 22:06:54.5'": [3],
    "request_time > 2026-11-20 22:06:54.5": [3],
    "request_time > 2026-11-20T22:06:54.500000": [3],
    "request_time > 2026-11-20T22:06:54.499999999": [2, 3],
    "request_time >= 2026-11-20T22:06:54.500000001": [3],
    "request_time <= 2026-11-20T22:06:54.500000001": [1, 2],
    "request_time = +1s": [2],
    "request_time > +0s and request_time <= +1s": [2],
    "request_time >= 22:07": [3],
    "request_time >= '2026-11-20T23:07:00+01:00'": [3],
    # flags
    "committed": [4],
    "not committed": [5],
    "committed = false": [5],
    "committed != true": [5],
    "committed is null": [1, 2, 3],
    # every error code of a response, not only the first
    "error = 6": [2],
    "error = NOT_LEADER_OR_FOLLOWER": [2],
    "error in (unknown-topic-or-partition, 7)": [2],
    "error_code = 6": [],
    "error = 0": [1],
    "error != 6": [1],
    "error is null": [3, 4, 5],
    "error not in (3, 0)": [],
    # precedence
    "call_id = 1 or call_id = 2 and call_id = 3": [1],
    "(call_id = 1 or call_id = 2) and not call_id = 1": [2],
    "not call_id = 1 and call_id < 3": [2],
    "not not call_id = 1": [1],
    "status in (answered, unanswered) and api_key>0": [2, 3, 5],
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_filters_choose(text: str) -> None:
    assert chosen(text) == CASES[text]
    assert chosen(text, coded=True) == CASES[text]


def test_times_are_in_the_zone_that_is_asked_for() -> None:
    assert chosen("request_time >= '2026-11-20 23:07'", zone="+01:00") == [3]
    assert chosen("request_time >= '2026-11-20 23:07'") == []


ERRORS_SAID = {
    "api_nam = Fetch": ("unknown column 'api_nam'; did you mean api_name?", "^^^^^^^", 0),
    "client = x": ("unknown column 'client'; did you mean client_address or client_port", "^^^^^^", 0),
    "api_name = 'Fetsh'": ("unknown API 'Fetsh': did you mean Fetch", "^^^^^^^", 11),
    "api_name = fetch": ("unknown API 'fetch': did you mean Fetch", "^^^^^", 11),
    "status = unanswerd": ("unknown status 'unanswerd'; did you mean unanswered", "^^^^^^^^^", 9),
    "error = NOT_LEADER": ("unknown error 'NOT_LEADER': did you mean NOT_LEADER_OR_FOLLOWER", "^^^^^^^^^^",
    8),
    "client_id = 'shop": ("the quote ' is not closed", "^^^^^", 12),
    "(call_id = 1": ("this parenthesis is not closed", "^", 0),
    "call_id in (1, 2": ("this parenthesis is not closed", "^", 11),
    "call_id in (1 2)": ("expected ',' or ')'", "^", 14),
    "call_id = 1)": ("expected 'and', 'or' or the end", "^", 11),
    "call_id = 1 call_id = 2": ("expected 'and', 'or' or the end", "^^^^^^^", 12),
    "call_id = one": ("'one' does not fit: call_id is a number", "^^^", 10),
    "latency > fast": ("'fast' does not fit: latency is a duration, such as 100ms", "^^^^", 10),
    "latency > 100": ("latency needs a duration with a unit", "^^^", 10),
    "request_bytes > 1XB": ("'1XB' does not fit: request_bytes is a size", "^^^", 16),
    "request_time > soon": ("'soon' is not a valid time", "^^^^", 15),
    "client_id = null": ("nothing compares with null; write 'is null'", "^^^^", 12),
    "client_id = and": ("'and' as a text needs quotes", "^^^", 12),
    "topic < b": ("topic is a list of texts, which has no order", "^", 6),
    "call_id like '1%'": ("'like' compares texts; call_id is a number", "^^^^", 8),
    "call_id ~ 1": ("'~' compares texts", "^", 8),
    "call_id not 1": ("expected 'in' or 'like' after 'not'", "^", 12),
    "call_id is 1": ("expected 'null' or 'not null' after 'is'", "^", 11),
    "call_id": ("expected an operator after call_id", "^", 7),
    "": ("expected a column", "^", 0),
    "and": ("expected a column", "^^^", 0),
    "call_id = 1 or": ("expected a column", "^", 14),
    "call_id = 1 && acks = 0": ("expected 'and', 'or' or the end", "^^", 12),
    "call_id = ": ("expected a value", "^", 10),
    "! call_id = 1": ("unexpected character '!'", "^", 0),
    "committed = 5": ("'5' does not fit: committed is true or false", "^", 12),
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS_SAID)
def test_errors_underline_the_place(text: str) -> None:
    problem, mark, column = ERRORS_SAID[text]
    with pytest.raises(UsageError) as raised:
        parse_filter(text)
    said, shown, under = str(raised.value).split("\n")
    assert problem in said
    assert shown == f"  {text}"
    assert under == " " * (column + 2) + mark


def test_a_long_filter_is_shown_around_the_place() -> None:
    text = " and ".join(["call_id > 0"] * 500) + " and cal_id > 0"
    with pytest.raises(UsageError) as raised:
        parse_filter(text)
    _, shown, under = str(raised.value).split("\n")
    assert len(shown) <= 102
    assert shown[under.index("^") :].startswith("cal_id")


@pytest.mark.parametrize("text", ["(" * 5000 + "call_id = 1", "not " * 5000 + "call_id = 1", "a" * (1 << 21)])
def test_hostile_filters_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(text)


def test_control_characters_do_not_shift_the_place() -> None:
    with pytest.raises(UsageError) as raised:
        parse_filter("client_id = 'a\x1b[31m\nb' and x = 1")
    _, shown, under = str(raised.value).split("\n")
    assert shown[under.index("^") :].startswith("x = 1")
    assert "\x1b" not in shown


def test_every_column_can_be_named() -> None:
    names = {column.name for column in TABLES["api_calls"].own}
    assert names <= set(load_attributes())
    for name in names:
        assert parse_filter(f"{name} is null").columns == {name}


def may(text: str, **facts: Any) -> bool:
    return parse_filter(text).resolve(FIRST_NS).may_choose(facts)


def test_what_is_not_known_yet_may_be_anything() -> None:
    assert not may("client_id = a and latency > 1s", client_id="b")
    assert may("client_id = a or latency > 1s", client_id="b")
    assert may("not (client_id = a and latency > 1s)", client_id="a")
    assert not may("not (client_id = a or latency > 1s)", client_id="a")
    assert not may("client_id = a", client_id=None)
    assert not may("not client_id = a", client_id=None)
    assert may("client_id is null", client_id=None)
    assert not may("client_id is null", client_id="")
    assert may("error = 3")


def spans(text: str) -> tuple[int | None, int | None]:
    return parse_filter(text).span("call_id")


def test_bounds_of_a_column() -> None:
    assert spans("call_id > 3 and call_id < 9 and acks = 1") == (4, 8)
    assert spans("call_id = 3 or call_id = 9") == (3, 9)
    assert spans("call_id = 3 or acks = 1") == (None, None)
    assert spans("not call_id = 3") == (None, None)
    assert spans("call_id in (5, 2)") == (2, 5)


def numbers(text: str) -> frozenset[int] | None:
    return parse_filter(text).numbers("call_id")


def test_listed_numbers_of_a_column() -> None:
    assert numbers("call_id in (1, 2) and call_id in (2, 3)") == frozenset({2})
    assert numbers("call_id = 1 or call_id = 2") == frozenset({1, 2})
    assert numbers("call_id = 1 or acks = 2") is None
    assert numbers("call_id > 1") is None
    assert numbers("not call_id = 1") is None


def test_a_time_that_counts_from_an_unknown_packet_is_refused() -> None:
    filter_: Filter = parse_filter("request_time > +1s")
    with pytest.raises(UsageError, match="no packet time to count from"):
        filter_.resolve(None)
