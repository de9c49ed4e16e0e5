"""Which versions a release takes: the edges of its spans, and who may have asked."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.upgrade import Client, _client, _why
from kwsniff.findings.upgrade_targets import Target

SPAN = (3, 13)


def row(version: int, **changed: Any) -> dict[str, Any]:
    return {
        "api_key": 0,
        "api_name": "Produce",
        "api_version": version,
        "calls": 5,
        "call_id": 1,
        "frame": 1,
        "asks": False,
        "perhaps_asks": False,
        "held_back": False,
        "record_formats": None,
        **changed,
    }


@pytest.mark.parametrize(
    ("given", "span", "why"),
    [
        (row(2), SPAN, "below"),
        (row(3), SPAN, None),
        (row(13), SPAN, None),
        (row(14), SPAN, "above"),
        (row(14, asks=True), SPAN, None),
        (row(14, perhaps_asks=True), SPAN, "perhaps_asked"),
        (row(2, asks=True, perhaps_asks=True), SPAN, "below"),
        (row(2, held_back=True), SPAN, "held_back"),
        (row(3, held_back=True), SPAN, None),
        (row(5), None, "dropped"),
        (row(5, perhaps_asks=True), None, "perhaps_needless"),
        (row(99, api_name="ApiVersions"), SPAN, None),
    ],
)
def test_why_a_release_does_not_take_a_version(
    given: dict[str, Any], span: tuple[int, int] | None, why: str | None
) -> None:
    assert _why(given, span) == why


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([row(3)], "works"),
        ([row(2), row(3)], "breaks"),
        ([row(2, held_back=True)], "unknown"),
        ([row(0, api_key=18, api_name="ApiVersions")], "unknown"),
        ([row(0, api_key=18, api_name="ApiVersions"), row(4)], "works"),
    ],
)
def test_a_client_works_where_something_but_its_question_was_tried(
    rows: list[dict[str, Any]], verdict: str
) -> None:
    assert (
        _client(("shop", "10.0.0.1", "java"), rows, Target("4.3.1", {0: SPAN, 18: (0, 4)})).verdict == verdict
    )


@pytest.mark.parametrize(
    ("client_id", "address", "name"),
    [("shop", "10.0.0.1", "shop"), (None, "10.0.0.1", "10.0.0.1"), (None, None, "an unknown client")],
)
def test_a_client_goes_by_its_id_else_its_address(client_id: Any, address: Any, name: str) -> None:
    assert Client(client_id, address, None, "works", (), ()).name == name
