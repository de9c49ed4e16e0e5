"""A client that opens connection after connection and leaves them open without work."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.opened import OTHER, call, judge, kafka


def opened(number: int, every_s: float, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """So many connections with a call each, open at the end of the capture."""
    moments = [(each, each * every_s) for each in range(number)]
    connections = [kafka(each + 1, at, at + 0.2, **more) for each, at in moments]
    return connections, [call(each + 1, at + 0.1, at + 0.15) for each, at in moments]


def found(connections: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[tuple[str, str, float]]:
    said = judge("connection_churn", connections, seconds=20, api_calls=calls)
    return [(each.subject, each.blames, each.calls) for each in said]


def test_connections_that_stay_open_without_work_are_left_behind() -> None:
    connections, calls = opened(24, 0.5)
    assert found(connections, calls) == [("shop", "client", 24)]
    (finding,) = judge("connection_churn", connections, seconds=20, api_calls=calls)
    assert "opened 24 connections, 2.1 per second" in finding.text
    assert "left 24 of them without work" in finding.text


@pytest.mark.parametrize("ended", [0, 9, 10])
def test_connections_that_ended_soon_count_with_those_left_open(ended: int) -> None:
    connections, calls = opened(24, 0.5)
    for each in connections[:ended]:
        each |= {"ending": "fin", "closed_by": "client"}
    assert found(connections[:20], calls[:20]) == [("shop", "client", 20)]


@pytest.mark.parametrize(("number", "every_s"), [(15, 0.5), (24, 0.1), (40, 0.1), (24, 2)])
def test_a_pool_that_opens_at_once_or_slowly_is_none(number: int, every_s: float) -> None:
    assert found(*opened(number, every_s)) == []


def test_nor_are_connections_that_work_or_belong_to_several_machines() -> None:
    connections, calls = opened(24, 0.5)
    later = [call(100 + each, 15 + each / 100, 15.5, connection_id=each + 1) for each in range(24)]
    assert found(connections, [*calls, *later]) == []
    moved = [{**each, "client_address": OTHER} if n % 2 else each for n, each in enumerate(connections)]
    assert found(moved, calls) == []
