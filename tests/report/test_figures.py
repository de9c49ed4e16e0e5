"""Figures of the page's charts and tables, from rows made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed")

import duckdb

from kwsniff.report import digest, latency, time_parts
from kwsniff.report.chart_labels import label, labels
from kwsniff.report.comparison import _figure, _interval
from kwsniff.report.errors import _MOST_NAMES, _by_name
from kwsniff.report.proof import Commands
from kwsniff.report.span import SLOTS, Span, find_span
from kwsniff.zones import UTC_ZONE, parse_zone

MS = 1_000_000
BEGIN = 1_700_000_000_000_000  # microseconds
SPAN = Span(BEGIN, 1_000)


@pytest.fixture
def database() -> Iterator[Any]:
    """Calls and latencies, as the views of findings have them; nothing in them."""
    with duckdb.connect() as found:
        found.execute("""
            set TimeZone = 'UTC';
            create table call (run_id varchar, call_id bigint, client varchar, client_address varchar,
                api_name varchar, api_key int, topics varchar[], error_count int, status varchar,
                request_time timestamptz, response_end_time timestamptz);
            create table latency (run_id varchar, call_id bigint, api_name varchar, api_key int,
                request_time timestamptz, total_ns bigint, deliberate_wait_ns bigint, wait varchar,
                queued_behind_wait varchar, request_transmission_ns bigint, response_transmission_ns bigint,
                network_ns bigint, broker_ns bigint, queue_wait_ns bigint);
            create table connection (first_time timestamptz, last_time timestamptz);
        """)
        yield found


def add(database: Any, table: str, **values: Any) -> None:
    for name in [each for each in values if each.endswith("_time")]:
        if isinstance(values[name], int):
            values[name] = datetime.fromtimestamp(values[name] / 1e6, UTC)
    marks = ", ".join("?" * len(values))
    database.execute(f"insert into {table} ({', '.join(values)}) values ({marks})", [*values.values()])  # noqa: S608


def call(database: Any, number: int, begin: int, total_ns: int, **more: Any) -> None:
    """One call with its latency, in broker time but for what is said."""
    parts = {
        name: more.pop(name, 0)
        for name in (
            "deliberate_wait_ns", "request_transmission_ns", "response_transmission_ns", "network_ns",
            "queue_wait_ns",
        )
    }  # fmt: skip
    kind = {name: more.pop(name, "none") for name in ("wait", "queued_behind_wait")}
    own = {"run_id": "r", "call_id": number, "api_name": more.pop("api_name", "Fetch"), "api_key": 1}
    end = begin + total_ns // 1000
    own_call = {
        "client": "shop",
        "client_address": "10.0.0.1",
        "topics": ["orders"],
        "error_count": 0,
        "status": "answered",
    }
    add(database, "call", **own, **own_call | more, request_time=begin, response_end_time=end)
    broker = total_ns - sum(parts.values())
    add(database, "latency", **own, request_time=begin, total_ns=total_ns, broker_ns=broker, **parts, **kind)


def test_the_page_is_as_long_as_calls_and_connections(database: Any) -> None:
    """To the end of the last response, which is in the last slot."""
    assert find_span(database) is None
    call(database, 1, BEGIN, 5 * MS)
    call(database, 2, BEGIN + 1_000_000, 200_000 * 1000)
    span = find_span(database)
    assert span is not None
    assert (span.begin, span.width) == (BEGIN, 10_001)  # 1.2 s in 120 slots
    assert (1_200_000) // span.width < SLOTS
    add(database, "connection", first_time=BEGIN - 600_000, last_time=BEGIN)
    earlier = find_span(database)
    assert earlier is not None
    assert (earlier.begin, earlier.width) == (BEGIN - 600_000, 15_001)


def test_a_moment_has_slots_too(database: Any) -> None:
    add(database, "connection", first_time=BEGIN, last_time=BEGIN)
    span = find_span(database)
    assert span is not None
    assert span.width == 1_000 // SLOTS + 1


@pytest.mark.parametrize(("zone", "hours"), [(UTC_ZONE, 0), (parse_zone("+02:00"), 2)])
def test_axes_are_in_the_zone_and_texts_say_it(zone: Any, hours: int) -> None:
    span = Span(BEGIN, 1_000, zone)
    ahead = hours * 3_600_000
    assert span.first_ms == BEGIN / 1000 + ahead
    assert span.last_ms == BEGIN / 1000 + SLOTS + ahead
    assert span.middle_ms(3) == BEGIN / 1000 + 3.5 + ahead
    assert span.time_ms(datetime.fromtimestamp(BEGIN / 1e6, UTC)) == span.first_ms
    assert f"{22 + hours:02}:13:20"[-5:] in span.at(span.first_ms)
    assert span.at(span.first_ms) == zone.moment(BEGIN * 1000)


def parts_of(database: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    found: list[Any] = []
    by_part = time_parts._by_part

    def told(rows: Any) -> Any:
        found.append(by_part(rows))
        return found[-1]

    monkeypatch.setattr(time_parts, "_by_part", told)
    time_parts.make_time_parts(database, SPAN)
    work, waits = found[0]
    return (
        {name: {slot: each for slot, each in enumerate(values) if each} for name, values in shown.items()}
        for shown in (work, waits)
    )  # type: ignore[return-value]


def test_a_call_counts_in_its_slots_by_how_much_of_it_is_there(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.5 ms from the middle of slot 1 on: half a slot, one, one. 0.4 ms within slot 5, with all parts."""
    call(database, 1, BEGIN + 1_500, 2_500_000)
    call(
        database, 2, BEGIN + 5_100, 400_000, network_ns=100_000, queue_wait_ns=50_000,
        request_transmission_ns=30_000, response_transmission_ns=20_000, queued_behind_wait="data",
        deliberate_wait_ns=150_000, wait="data",
    )  # fmt: skip
    work, waits = parts_of(database, monkeypatch)
    assert work["broker"] == pytest.approx({1: 500_000, 2: 1_000_000, 3: 1_000_000, 5: 50_000})
    assert work["network"] == pytest.approx({5: 100_000})
    assert work["transmission"] == pytest.approx({5: 50_000})
    assert work["line_behind_wait"] == pytest.approx({5: 50_000})
    assert "line" not in work
    assert waits["data"] == pytest.approx({5: 150_000})


def test_the_longest_wait_is_first_and_slots_outside_are_the_nearest() -> None:
    none = dict.fromkeys(("broker", "network", "transmission", "line", "line_behind_wait"), 0.0)
    rows = [
        {**none, "slot": -3, "wait": "data", "waited": 5.0, "broker": 1.0},
        {**none, "slot": SLOTS + 7, "wait": "group", "waited": 90.0, "broker": 2.0},
        {**none, "slot": 4, "wait": "data", "waited": 6.0},
    ]
    work, waits = time_parts._by_part(rows)
    assert [*waits] == ["group", "data"]
    assert (work["broker"][0], work["broker"][-1]) == (1.0, 2.0)
    assert (waits["data"][0], waits["data"][4], waits["group"][-1]) == (5.0, 6.0, 90.0)


def test_calls_in_flight_are_time_in_a_slot_by_its_length() -> None:
    """1 ms of 1 ms: one call."""
    plot = time_parts._stack(SPAN, {"broker": [1_000_000.0] + [0.0] * (SLOTS - 1)}, {})
    ((box,),) = [mark.boxes for mark in plot.marks]
    assert (box.bottom, box.top, box.left) == (0.0, 1.0, SPAN.first_ms)


def test_totals_have_their_share_of_all() -> None:
    table = time_parts._table({"broker": [30.0, 30.0], "network": [20.0]}, {"data": [20.0]})
    assert [(row[1].text, row[3].text) for row in table.rows] == [
        ("broker", "60 %"),
        ("network", "20 %"),
        ("new records", "20 %"),
    ]


def test_the_heat_map_counts_calls_by_slot_and_quarter_of_a_power_of_ten(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 ms is twelve quarters above 1 us, and in the step that begins there; so is all below 1.78 ms."""
    for number, total in enumerate((1 * MS, 1_700_000, 1_780_000, 500), 1):
        call(database, number, BEGIN + 10, total)
    call(database, 9, BEGIN + 2_010, 500 * MS, deliberate_wait_ns=499 * MS)
    found: list[Any] = []
    monkeypatch.setattr(latency, "_maps", lambda cells, *_: found.append(cells))
    latency.make_latency(database, SPAN, [], UTC_ZONE)
    cells = {(cell["slot"], cell["step"]): (cell["calls"], cell["longest"]) for cell in found[0]}
    assert cells == {(0, 0): (1, 500), (0, 12): (2, 1_700_000), (0, 13): (1, 1_780_000), (2, 12): (1, 1 * MS)}
    assert [latency._edge(step) for step in (0, 4, 12)] == pytest.approx([1_000, 10_000, 1_000_000])
    assert latency._edge(13) == pytest.approx(1_778_279, abs=1)


@pytest.mark.slow
def test_apis_are_in_the_order_of_their_time_with_percentiles(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six of seven are drawn: those with most time."""
    for number in range(100):
        call(database, number, BEGIN, (number + 1) * MS, api_name="Produce")
    for place, name in enumerate(("Fetch", "A", "B", "C", "D", "E")):
        for number in range(150):
            call(database, 1000 * (place + 1) + number, BEGIN, (20 - place) * 1000, api_name=name)
    found: list[Any] = []
    monkeypatch.setattr(latency, "_maps", lambda cells, order, *_: found.append((cells, order)))
    section = latency.make_latency(database, SPAN, [], UTC_ZONE)
    (cells, order), (table,) = found[0], section.tables
    assert order == ["Produce", "Fetch", "A", "B", "C", "D"]
    assert {cell["api"] for cell in cells} == {*order}
    row = [cell.text for cell in table.rows[0]]
    assert row[:2] == ["Produce", "100"]
    p99 = float(row[3].split()[0])
    assert 98 <= p99 <= 100  # not the 95th, whatever the sketch rounds
    assert row[4] == "100 ms"


def test_the_most_frequent_errors_have_names_and_the_rest_is_together() -> None:
    names = [f"E{number}" for number in range(_MOST_NAMES + 2)]
    rows = [
        {"error": name, "slot": slot, "errors": 1 + number}
        for number, name in enumerate(names)
        for slot in (0, 5)
    ]
    # The first one is the most frequent by its sum, and the rarest in its last slot.
    rows += [{"error": "E0", "slot": 2, "errors": 1000}, {"error": "E0", "slot": SLOTS + 9, "errors": 1}]
    found = _by_name(rows)
    ordered = ["E0", *reversed(names[3:]), "others"]
    assert [*found] == ordered
    assert (found["E0"][2], found["E0"][-1]) == (1000, 1)
    assert found["others"][0] == 2 + 3


def digested(database: Any) -> Any:
    (table,) = digest.make_digest(database, Commands("c.pcap")).tables
    return table


def test_the_digest_is_in_the_order_of_time_with_the_slowest_call(database: Any) -> None:
    call(database, 1, BEGIN, 10 * MS)
    call(database, 2, BEGIN, 60 * MS, error_count=2)
    call(database, 3, BEGIN, 20 * MS)
    call(database, 4, BEGIN, 900 * MS, api_name="JoinGroup", deliberate_wait_ns=890 * MS, status="unanswered")
    table = digested(database)
    shown = [dict(zip(table.columns, (cell.text for cell in row), strict=True)) for row in table.rows]
    fetch, join = shown
    assert (fetch["API"], fetch["share"], fetch["calls"], fetch["time"]) == ("Fetch", "90 %", "3", "90 ms")
    assert (fetch["errors"], fetch["unanswered"]) == ("1", "0")
    assert (fetch["p50"], fetch["p95"], fetch["max"]) == ("20 ms", "60 ms", "60 ms")
    assert fetch["slowest call"].endswith("--call 2")
    assert (join["share"], join["unanswered"], join["deliberate waits"]) == ("10 %", "1", "890 ms")
    assert table.note == ""


def test_what_the_digest_leaves_out_is_added_up(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_MOST", 1)
    call(database, 1, BEGIN, 70 * MS)
    call(database, 2, BEGIN, 20 * MS, api_name="Produce")
    call(database, 3, BEGIN, 10 * MS, api_name="Metadata")
    assert digested(database).note == "And 2 more combinations with 2 calls and 30 % of the time."


@pytest.mark.parametrize(
    ("text", "shown"), [("x" * 28, "x" * 28), ("a" * 14 + "b" * 15, "a" * 13 + "…" + "b" * 14), (None, "")]
)
def test_a_label_is_cut_where_it_does_not_fit(text: str | None, shown: str) -> None:
    assert label(text) == shown
    assert len(shown) <= 28


def test_labels_are_unique() -> None:
    given = ["a" * 20 + middle + "b" * 20 for middle in "xyz"]
    found = labels([*given, given[0]], 20)
    assert [*found] == given
    assert len({*found.values()}) == 3


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (99.94, "99.9"), (100.0, "100"), (1234.5, "1,234"), (0.01234, "0.0123")],
)
def test_figures_have_three_digits(value: float | None, shown: str) -> None:
    assert _figure(value) == shown


def test_means_alone_have_bounds() -> None:
    assert _interval((0.5, 0.5)) == ""
    assert _interval((0.5, 150.0)) == "0.5 to 150"
