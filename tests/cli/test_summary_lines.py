"""Lines and tables of the summary, from facts made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.cli.error_tables import ROUTINE, brokers_grid, clients_grid, without_routine
from kwsniff.cli.summary import summary as summary_room
from kwsniff.cli.summary.connections import connections_line, encrypted_lines, twins_line
from kwsniff.cli.summary.places import place_lines
from kwsniff.cli.summary.summary import _capture_point, summary_parts
from kwsniff.cli.text_tables import Grid

MS = 1_000_000
TRANSPORT = {
    f"{side}_{what}": 0
    for side in ("client", "broker")
    for what in ("bytes", "retransmitted_bytes", "missing_bytes", "zero_window_ns")
} | {"max_round_trip_ns": 0, "farthest_client": "10.0.0.9", "capture_points": {}}


def calls(name: str, number: int, **more: Any) -> dict[str, Any]:
    times = dict.fromkeys(("p50_ns", "p95_ns", "p99_ns", "max_ns"))
    return {
        "api_name": name, "api_key": 1, "api_version": 4, "calls": number, "calls_with_errors": 0,
        "statuses": {"answered": number}, **times, **more,
    }  # fmt: skip


def facts(**changed: Any) -> dict[str, Any]:
    lists = (
        "captures", "unread", "tls_not_opened", "unanswered_hellos", "errors", "errors_by_client",
        "errors_by_broker", "statuses", "groups", "transactions", "throttling", "calls", "clients",
        "connections", "anomalies", "findings", "ports", "servers",
    )  # fmt: skip
    return {
        **{name: [] for name in lists},
        "tables": {},
        "rows": {},
        "judged": False,
        "no_packets": False,
        "transport": TRANSPORT,
        "twins": {"left_out": 0, "counted": 0},
        "latency": {"apis": [], "clients": [], "topics": [], "brokers": []},
        **changed,
    }


def parts(top: int = 10, **changed: Any) -> tuple[list[str], dict[str, Grid]]:
    found = [*summary_parts(facts(**changed), top)]
    grids = {each.title: each for each in found if isinstance(each, Grid)}
    return [each for each in found if isinstance(each, str)], grids


def network(**changed: Any) -> str:
    return next((each for each in parts(transport={**TRANSPORT, **changed})[0] if "network" in each), "")


@pytest.mark.parametrize(("trip", "is_far"), [(10 * MS - 1, False), (10 * MS, True)])
def test_clients_are_far_from_ten_milliseconds_on(trip: int, is_far: bool) -> None:
    assert ("highest RTT 10 ms, client 10.0.0.9" in network(max_round_trip_ns=trip)) == is_far


def test_what_was_sent_again_is_a_share_of_what_was_sent() -> None:
    said = network(
        client_bytes=600, broker_bytes=400, client_retransmitted_bytes=30, broker_retransmitted_bytes=20
    )
    assert "5 % retransmitted" in said


@pytest.mark.parametrize(
    ("capture_points", "word"),
    [
        ({"client": 3, "broker": 1}, "client"),  # three of four agree
        ({"client": 74, "broker": 26}, None),
        ({"client": 2, "unknown": 2}, "client"),  # half of them show one
        ({"client": 2, "unknown": 3}, None),
        ({"client": 3, "broker": 1, "unknown": 4}, "client"),
        ({"unknown": 9}, None),
        ({}, None),
    ],
)
def test_the_capture_point_is_what_nearly_all_connections_show(
    capture_points: dict[str, int], word: str | None
) -> None:
    assert _capture_point(capture_points) == word


def test_calls_are_in_the_order_of_their_number_with_their_columns() -> None:
    times = {"p50_ns": 1 * MS, "p95_ns": 2 * MS, "p99_ns": 3 * MS, "max_ns": 4 * MS}
    _, grids = parts(
        calls=[
            calls("Fetch", 5),
            calls("Produce", 900, **times, calls_with_errors=7, statuses={"answered": 897, "unanswered": 3}),
            calls("Metadata", 70),
        ]
    )
    grid = grids["Calls"]
    assert [row[0] for row in grid.rows] == ["Produce", "Metadata", "Fetch"]
    assert dict(zip(grid.names, grid.rows[0], strict=True)) == {
        "api": "Produce", "version": "4", "calls": "900", "errors": "7", "unanswered": "3", "p50": "1 ms",
        "p95": "2 ms", "p99": "3 ms", "max": "4 ms",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("top", "title"), [(3, "Calls"), (2, "Calls (first 2 of 3)"), (1, "Calls (first 1 of 3)")]
)
def test_a_list_that_is_cut_says_so(top: int, title: str) -> None:
    _, grids = parts(top, calls=[calls(name, 1) for name in "abc"])
    assert len(grids[title].rows) == top


def test_reasons_are_in_the_order_of_their_number() -> None:
    group = {"group_id": "g", "kind": "classic", "rebalances": 6, "max_duration_ns": 5 * MS}
    _, grids = parts(groups=[{**group, "reasons": {"unknown": 1, "member_left": 3, "member_joined": 2}}])
    assert grids["Rebalances"].rows[0][-1] == "3 member_left, 2 member_joined, 1 unknown"


def test_what_is_whole_is_not_incomplete_and_few_apis_are_named() -> None:
    apis = [{"api_name": name, "count": 1} for name in ("a", "b", "c", "d", "e", "f")]
    rows = [
        {"status": status, "reason": None, "count": number, "apis": apis}
        for number, status in enumerate(("answered", "no_response_expected", "unanswered"), 1)
    ]
    _, grids = parts(statuses=rows)
    ((count, status, _, named),) = grids["Incomplete calls"].rows
    assert (count, status, named) == ("3", "unanswered", "a, b, c, d and 2 more")


@pytest.mark.parametrize(("own", "is_why"), [(50, True), (49, False)])
def test_a_finding_explains_what_takes_half_of_the_time(own: int, is_why: bool) -> None:
    mostly = {"part": "queue_wait_ns", "wait": "none", "share": 0.8, "possible": False}

    def item(name: str, total: int) -> dict[str, Any]:
        times = {"mean_active_ns": MS, "max_active_ns": MS, "calls": 1, "total_ns": total}
        return {"api_name": name, **times, "mostly": mostly}

    latency = {
        "apis": [item("Fetch", own), item("Produce", 100 - own)],
        "clients": [],
        "topics": [],
        "brokers": [],
    }
    (first, *_) = summary_room._slowest(latency, "broker_stalled")
    assert first[-1] == ("80 % queued: broker_stalled" if is_why else "80 % queued behind earlier calls")


def closed(connections: int, *, midway: int = 0, trip: int | None = None, **more: Any) -> dict[str, Any]:
    sums = {
        f"{side}_{what}": 0
        for side in ("client", "broker")
        for what in ("bytes", "tls_records", "retransmitted_bytes")
    }
    return {
        "broker": "b", "broker_port": 9093, "tls_version": "TLSv1.3", "tls_cipher": None,
        "connections": connections, "without_handshake": midway, "resets": 0, "round_trip_ns": trip, **sums,
        **more,
    }  # fmt: skip


def test_connections_that_stay_encrypted_are_added_up_by_broker_and_version() -> None:
    given = [
        closed(3, trip=9 * MS, client_bytes=1500, client_tls_records=2),
        closed(2, trip=7 * MS, resets=1),
    ]
    line, shown = encrypted_lines(given, [], 5)
    assert line.startswith("5 TLS connections to b:9093, TLS TLSv1.3, without keys")
    assert "round trip 7 ms" in shown
    assert "client sent 1.5 kB in 2 records" in shown
    assert shown.endswith("1 reset")


@pytest.mark.parametrize(("midway", "words"), [(2, "handshake not captured"), (1, "without keys")])
def test_a_handshake_is_not_captured_where_none_of_them_was(midway: int, words: str) -> None:
    line, _ = encrypted_lines([closed(2, midway=midway)], [], 5)
    assert words in line


def test_client_hellos_without_an_answer_are_no_encrypted_connections() -> None:
    hellos = [{"broker": "b", "broker_port": 9093, "connections": 2}]
    lines = [*encrypted_lines([closed(2, tls_version=None), closed(3)], hellos, 5)]
    assert lines[0].startswith("2 ClientHellos to b:9093 without ServerHello")
    assert lines[1].startswith("3 TLS connections")
    assert len(lines) == 3


@pytest.mark.parametrize(("hellos", "is_plain"), [(3, True), (2, False), (0, False)])
def test_a_listener_may_be_plaintext_where_no_handshake_got_an_answer(hellos: int, is_plain: bool) -> None:
    given = facts(
        connections=[{"protocol": "tls", "count": 3}],
        unanswered_hellos=[{"connections": hellos}] if hellos else [],
    )
    assert ("whether the listener is plaintext" in connections_line(given)) == is_plain


def test_twins_are_left_out_or_counted() -> None:
    assert [*twins_line({"left_out": 0, "counted": 0})] == []
    (left_out,) = twins_line({"left_out": 2, "counted": 0})
    assert left_out.startswith("2 more connections")
    assert left_out.endswith("left out below")
    (counted,) = twins_line({"left_out": 0, "counted": 1})
    assert counted.startswith("1 connection also captured")
    assert "counted below" in counted


def error(code: int, **more: Any) -> dict[str, Any]:
    return {
        "client_id": "shop", "client_address": "10.0.0.2", "broker_address": "fd00::1", "broker_port": 9092,
        "error_code": code, "error_name": None, "count": 1, "share": 0.5, **more,
    }  # fmt: skip


def test_routine_errors_are_left_out() -> None:
    rows = [error(code) for code in (3, *sorted(ROUTINE), 6)]
    assert [each["error_code"] for each in without_routine({"x": rows})["x"]] == [3, 6]


def test_brokers_and_clients_have_their_names() -> None:
    assert brokers_grid([error(999)]).rows == [("[fd00::1]:9092", "error 999", "1", "50 %")]
    assert brokers_grid([error(3, broker_address="b", error_name="E")]).rows[0][:2] == ("b:9092", "E")
    assert clients_grid([error(999)]).rows[0][:2] == ("shop", "10.0.0.2")
    assert clients_grid([error(999, client_id=None)]).rows[0][0] == "10.0.0.2"


CLOCK = {"is_reference": False, "clock_drift_ppm": 0.0, "clock_drift_error_ppm": None, "clock_steps": 0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clock_offset_ns": 3 * 10**9, "clock_error_ns": 10**6}, "clock 3 s ahead, to within 1 ms"),
        ({"clock_offset_ns": -20_000_000, "clock_error_ns": 2_000}, "clock 20 ms behind, to within 2 us"),
        ({"clock_offset_ns": None, "clock_error_ns": None}, "no calls tell its clock"),
        (
            {"clock_offset_ns": 0, "clock_error_ns": 10**6, "clock_drift_ppm": -100.0,
             "clock_drift_error_ppm": 3.0, "clock_steps": 1},
            "clock 0 ns ahead, to within 1 ms; 100.0 ppm slower, to within 3.0 ppm; stepped 1 time",
        ),
        ({"clock_offset_ns": 0, "clock_error_ns": 10**6, "clock_drift_ppm": 2.0,
          "clock_drift_error_ppm": 3.0}, "clock 0 ns ahead, to within 1 ms"),
    ],
)  # fmt: skip
def test_a_place_has_a_line_with_its_clock(changes: dict[str, Any], said: str) -> None:
    (line,) = place_lines([{"place": "b\x1b[1m", "side": "broker", **CLOCK, **changes}], 10)
    place, _, told = line.partition(": ")
    assert told == said
    assert place.endswith(", nearest to the broker")
    assert "\x1b" not in place


def test_places_beyond_the_first_are_counted() -> None:
    place = {"place": "a", "side": None, **CLOCK, "is_reference": True}
    assert list(place_lines([place] * 3, 2))[-1] == "and 1 more place"
