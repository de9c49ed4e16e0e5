"""Open connections, those with most bytes first, and what stays encrypted."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.live import connections as connections_room
from kwsniff.live.connections import not_opened, not_opened_words, open_connections
from kwsniff.tables.build import Builder
from tests.tables.columns import table


def rows(*each: dict[str, Any]) -> Any:
    given = {name: [row[name] for row in each] for name in each[0]}
    return open_connections(
        Builder(load_catalog(), ENUMS).build("connections", table("connections", len(each), **given))
    )


def test_most_bytes_of_both_sides_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(10, 0), (5, 100), (90, 1), (0, 95), (3, 3)]
    given = [{"client_bytes": sent, "broker_bytes": got, "client_port": sent} for sent, got in sizes]
    assert [row["client_port"] for row in rows(*given)] == [5, 0, 90, 10, 3]
    monkeypatch.setattr(connections_room, "MOST_SHOWN", 2)
    assert [row["client_port"] for row in rows(*given)] == [5, 0]


def test_tls_that_was_not_opened_is_added_up() -> None:
    """Opened TLS is a Kafka connection with a version."""
    empty = {"client_tls_records": None, "broker_tls_records": None}
    sealed = {"protocol": "tls", "tls_version": b"TLSv1.3"}
    found = rows(
        {
            **sealed,
            "client_bytes": 1000,
            "broker_bytes": 50,
            "client_tls_records": 7,
            "broker_tls_records": 2,
        },
        {**sealed, "client_bytes": 500, "broker_bytes": 20, **empty},
        {"protocol": "kafka", "tls_version": b"TLSv1.3", "client_bytes": 9, "broker_bytes": 9, **empty},
    )
    assert not_opened(found) == {
        "connections": 2,
        "client_bytes": 1500,
        "client_tls_records": 7,
        "broker_bytes": 70,
        "broker_tls_records": 2,
    }
    assert not_opened_words(found).startswith("2 connections, not decrypted: client sent ")
    assert "7 records" in not_opened_words(found)
    assert not_opened_words(found[2:]) == ""


def test_without_connections_there_are_none() -> None:
    assert open_connections(None) == ()
