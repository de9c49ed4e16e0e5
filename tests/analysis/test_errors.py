"""Errors by client and by broker, against counting the same rows with sets and dictionaries."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

from kwsniff.analysis.rollups.errors import OTHERS, Failures
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from tests.tables.columns import table

CLIENTS = ((b"shop", b"10.0.0.2"), (b"bill", b"10.0.0.3"), (None, b"10.0.0.4"))
PORTS = (9092, 9093)


def scripted(seed: int, calls: int = 60) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Calls, and their error codes in any order: some calls have one twice, some have two kinds."""
    dice = random.Random(seed)
    made = []
    for number in range(calls):
        client, address = dice.choice(CLIENTS)
        made.append(
            {
                "call_id": seed * 1000 + number,
                "client_id": client,
                "client_address": address,
                "broker_address": b"10.0.0.1",
                "broker_port": dice.choice(PORTS),
            }
        )
    errors = [
        {**call, "error_code": code}
        for call in made
        for code in dice.choice([(), (), (3,), (6, 6, 6), (3, 6), (3, 6, 3)])
    ]
    dice.shuffle(errors)
    return made, errors


def shown(failures: Failures, calls: list[dict[str, Any]], errors: list[dict[str, Any]]) -> None:
    builder = Builder(load_catalog(), ENUMS)
    for name, rows, add in (
        ("api_calls", calls, failures.add_calls),
        ("error_codes", errors, failures.add_errors),
    ):
        given = {column: [row[column] for row in rows] for column in rows[0]}
        add(builder.build(name, table(name, len(rows), **given)))


def by_hand(calls: list[dict[str, Any]], errors: list[dict[str, Any]], *party: str) -> list[tuple[Any, ...]]:
    """Party, code, errors, calls with the error, share; most errors first."""

    def named(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name].decode() if isinstance(row[name], bytes) else row[name] for name in party)

    everything = Counter(named(call) for call in calls)
    count = Counter((*named(error), error["error_code"]) for error in errors)
    with_it = defaultdict(set)
    for error in errors:
        with_it[*named(error), error["error_code"]].add(error["call_id"])
    return sorted(
        (*key, number, len(with_it[key]), round(len(with_it[key]) / everything[key[:-1]], 4))
        for key, number in count.items()
    )


def told(found: list[dict[str, Any]], *party: str) -> list[tuple[Any, ...]]:
    columns = (*party, "error_code", "count", "calls", "share")
    return [tuple(row[name] for name in columns) for row in found]


def test_errors_are_counted_by_client_and_by_broker_as_by_hand() -> None:
    for seed in range(1, 6):
        calls, errors = scripted(seed)
        calls = [{**call, "client_id": call["client_id"] or b"none"} for call in calls]
        errors = [{**error, "client_id": error["client_id"] or b"none"} for error in errors]
        failures = Failures()
        shown(failures, calls, errors)
        got = failures.as_dict()
        for side, party in (
            ("client", ("client_id", "client_address")),
            ("broker", ("broker_address", "broker_port")),
        ):
            found = told(got[f"errors_by_{side}"], *party)
            assert sorted(found) == by_hand(calls, errors, *party)
            assert any(row[-3] > row[-2] for row in found)  # some calls have an error more than once


def test_most_errors_come_first() -> None:
    calls, errors = scripted(3)
    failures = Failures()
    shown(failures, calls, errors)
    for found in failures.as_dict().values():
        counts = [row["count"] for row in found]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1]


def test_a_client_without_an_id_has_a_row_of_its_own() -> None:
    calls, errors = scripted(2)
    failures = Failures()
    shown(failures, calls, errors)
    nameless = [row for row in failures.as_dict()["errors_by_client"] if row["client_id"] is None]
    assert {row["client_address"] for row in nameless} == {"10.0.0.4"}
    assert sum(row["count"] for row in nameless) == sum(error["client_id"] is None for error in errors)


def test_windows_are_merged_to_what_one_of_all_would_have_counted() -> None:
    whole, parts = Failures(), []
    for seed in (1, 2, 3):
        calls, errors = scripted(seed)
        shown(whole, calls, errors)
        parts.append(Failures())
        shown(parts[-1], calls, errors)
    assert Failures().merge(parts).as_dict() == whole.as_dict()


def test_the_bound_counts_clients_and_what_is_beyond_it_together() -> None:
    calls = [
        {
            "call_id": number,
            "client_id": b"client-%02d" % number,
            "client_address": b"10.0.0.2",
            "broker_address": b"10.0.0.1",
            "broker_port": 9092,
        }
        for number in range(5)
    ]
    failures = Failures(most=3)
    shown(failures, calls, [{**call, "error_code": 3} for call in calls])
    got = {row["client_id"]: (row["count"], row["share"]) for row in failures.as_dict()["errors_by_client"]}
    alone = (1, 1.0)
    assert got == {"client-00": alone, "client-01": alone, "client-02": alone, OTHERS: (2, None)}
    # Calls are counted under the same bound: a fourth client has no total.
    assert Failures(most=3).as_dict() == {"errors_by_client": [], "errors_by_broker": []}
    assert len(failures._calls["client"]) == 3


def test_a_call_with_two_kinds_of_errors_has_each() -> None:
    """Rows in order end with the call with which those of the next kind begin."""
    call = {
        "call_id": 7,
        "client_id": b"shop",
        "client_address": b"10.0.0.2",
        "broker_address": b"10.0.0.1",
        "broker_port": 9092,
    }
    failures = Failures()
    shown(failures, [call], [{**call, "error_code": code} for code in (3, 6, 3)])
    got = {row["error_code"]: (row["count"], row["calls"]) for row in failures.as_dict()["errors_by_client"]}
    assert got == {3: (2, 1), 6: (1, 1)}
