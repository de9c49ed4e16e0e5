"""Figures of TLS that stays encrypted, against adding up the rows by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.analysis.rollups import tls
from kwsniff.analysis.rollups.tls import SUMS, ClosedFigures
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from tests.tables.columns import table

ROW: dict[str, Any] = {
    "protocol": "tls",
    "broker_address": b"10.0.0.1",
    "broker_port": 9093,
    "tls_server_name": None,
    "tls_version": b"TLSv1.3",
    "tls_cipher": b"TLS_AES_128_GCM_SHA256",
    "tls_hello": True,
    "ending": "open",
    "round_trip_ns": None,
    **dict.fromkeys(SUMS, 0),
}


def counted(*batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    figures, builder = ClosedFigures(), Builder(load_catalog(), ENUMS)
    for given in batches:
        rows = [{**ROW, **row} for row in given]
        columns = {name: [row[name] for row in rows] for name in ROW}
        figures.add(builder.build("connections", table("connections", len(rows), **columns)))
    return [dict(each) for each in figures.as_dicts()]


def test_connections_to_one_broker_are_added_up() -> None:
    """Over batches, too; the round trip is the least that was seen."""
    bytes_of = {name: number for number, name in enumerate(SUMS, 1)}
    (got,) = counted(
        [{**bytes_of, "round_trip_ns": 700}, {**bytes_of, "round_trip_ns": None, "ending": "reset"}],
        [{**bytes_of, "round_trip_ns": 400}, {**bytes_of, "round_trip_ns": 900}],
    )
    assert got["connections"] == 4
    assert got["resets"] == 1
    assert got["round_trip_ns"] == 400
    assert {name: got[name] for name in SUMS} == {name: 4 * number for name, number in bytes_of.items()}


def test_a_round_trip_that_nobody_saw_is_none() -> None:
    (got,) = counted([{}], [{}])
    assert got["round_trip_ns"] is None


def test_brokers_go_by_the_name_that_clients_asked_for() -> None:
    got = counted([{"tls_server_name": b"one.example"}, {"tls_server_name": b"two.example"}, {}])
    assert {(each["broker"], each["broker_port"]) for each in got} == {
        ("one.example", 9093),
        ("two.example", 9093),
        ("10.0.0.1", 9093),
    }


def test_most_connections_come_first() -> None:
    got = counted([{"broker_port": port} for port in (1, 2, 2, 2, 3, 3)])
    assert [(each["broker_port"], each["connections"]) for each in got] == [(2, 3), (3, 2), (1, 1)]


def test_a_handshake_is_missing_where_neither_side_greeted() -> None:
    """A ClientHello alone, or a ServerHello alone, is a handshake that was seen."""
    (_, got) = sorted(
        counted(
            [
                {"tls_hello": True},
                {"tls_hello": False},
                {"tls_hello": None, "tls_cipher": None},
                {"tls_hello": False, "tls_cipher": None},
                {"tls_hello": True, "tls_cipher": None},
            ]
        ),
        key=lambda each: each["tls_cipher"] is None,
    )
    assert (got["connections"], got["without_handshake"]) == (3, 2)


def test_what_is_not_tls_is_left_out() -> None:
    others = [word for word in ENUMS["protocol"] if word != "tls"]
    assert "kafka" in others
    assert len(others) > 1
    assert counted([{"protocol": word} for word in others]) == []


def test_kinds_beyond_the_bound_are_left_out_and_known_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "MOST_KINDS", 2)
    got = counted([{"broker_port": port} for port in (1, 2, 3)], [{"broker_port": port} for port in (1, 3)])
    assert {each["broker_port"]: each["connections"] for each in got} == {1: 2, 2: 1}
