"""Rules over twice as many calls have twice as much to do, where everything is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.findings import small_tables
from kwsniff.findings.finding_calls import create_tables
from kwsniff.findings.harm import keep_harm
from kwsniff.findings.rule import Rule, load_rules
from kwsniff.findings.views import READ, keep_small, open_tables
from tests.perf.findings import repeated
from tests.perf.loads import SMALL_PERIOD, rounds, small
from tests.perf.repeat import write

from .scripted import table_of
from .test_stretches import _call, _capture

PCAP_HEADER = 24
CAPTURES = Path(__file__).parents[2] / "captures"


@pytest.fixture(autouse=True)
def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are those over many rows, however few these tables have."""
    monkeypatch.setattr(small_tables, "_BYTES", -1)


def _tables(folder: str) -> dict[str, pa.Table]:
    captures = [*(CAPTURES / folder).rglob("*.pcap"), *(CAPTURES / folder).rglob("*.pcapng")]
    found = kwsniff.analyze(sorted(captures), tables=READ)
    return {name: getattr(found, name) for name in READ}


def _floors(rule: Rule) -> dict[str, float]:
    return {name: value for name, value in rule.floors.items() if re.search(rf"\${name}\b", rule.query)}


def _rows(operator: dict[str, Any]) -> int:
    """What an operator and all below it hand on; the name of it depends on DuckDB's version."""
    own = operator.get("intermediate_rows", operator.get("operator_cardinality", 0))
    return int(own) + sum(map(_rows, operator.get("children", [])))


def _handed_on(tables: dict[str, pa.Table], profile: Path) -> dict[str, int]:
    """Rule -> rows that its operators hand on."""
    rules = load_rules()
    handed = {}
    with open_tables(tables, [rule.query for rule in rules]) as database:
        keep_small(database, [rule.query for rule in rules])
        create_tables(database)
        keep_harm(database)
        database.execute(f"set enable_profiling = 'json'; set profiling_output = '{profile}'")
        for rule in rules:
            database.execute(f"select count(*) from ({rule.query})", _floors(rule)).fetchall()  # noqa: S608
            told = json.loads(profile.read_text())
            handed[rule.name] = sum(map(_rows, told.get("operator", told.get("children"))))
    return handed


# All incidents in one run; and few calls so often that pairs outweigh what else is to do: somebody
# looks at groups, and is refused before asking in the old way.
@pytest.mark.slow
@pytest.mark.parametrize(("folder", "times"), [("incidents", 8), ("group_classic", 512)])
def test_no_rule_compares_calls_with_each_other(folder: str, times: int, tmp_path: Path) -> None:
    """Pairs would be four times as many, where the calls are twice as many."""
    tables = _tables(folder)
    profile = tmp_path / "profile.json"
    once, twice = (_handed_on(repeated(tables, each), profile) for each in (times, 2 * times))
    assert min(twice.values()) > 0
    assert {name: (once[name], rows) for name, rows in twice.items() if rows > 2.5 * once[name]} == {}


# A join by a key compares all pairs of that key, and hands on only those that pass its inequalities: nothing
# that it hands on tells. These have one row of a key, or next to none, on one side. What stands
# in a join depends on DuckDB's version.
_OF_FEW = {
    "far_away": "a client's round trip",
    "backend_down": "the least version of an API; when an address was silent between two answers",
    "connection_limit": "a client that an address turned away",
    "idle_closed": "the least version of an API",
    "path_dead": "when a client's path died",
    "unreachable": "when a client tried an address",
    "broker_stalled": "the least version of an API",
    "broker_hangs_up": "the least version of an API; the highest that a client was refused",
    "broker_slow": "the restarts of a broker",
    "commit_refused": "members of a group",
    "consumer_stuck": "a client's sums; the readers of a partition that a member left",
    "connection_refused": "the brokers of a client",
    "not_kafka": "the least version of an API",
    "read_committed_held_back": "a hundred waits",
    "tls_handshake_failed": "the handshakes of a client, added up",
    "topic_recreated": "when a topic was deleted",
    "replication_slow": "writes that waited long, and the brokers that left meanwhile",
    "unknown_topic": "a hundred unknown topics, and ten thousand known ones",
    "hot_partition": "a topic's partitions",
    "stale_leader": "brokers that Metadata gives one address",
    "offline_partition": "the brokers of a partition without a leader",
    "cross_rack": "the racks of a client's brokers",
    "persistent_error": "an error of a client",
    "timeout_too_short": "the time of a broker in which clients waited",
    "session_expired": "when a client was first seen in a group",
    "client_silent": "a client's two longest pauses",
    "recompressed": "batches of one offset",
    "producer_fenced": "clients of one transactional id",
    "metadata_storm": "a client's sums",
    "path_mtu": "the largest packet of one side that got through to the other",
    "fetch_sessions_lost": "the sums of a broker",
    "rebalance_slow": "the slow rebalances of a group",
    "no_committed_offset": "where a group begins on a partition",
    "idle_dropped": "when the latest connection of a run was opened, and the first record on one",
    "lost_records": "where the offsets of a partition were used again",
    "duplicated_records": "where one batch is, and the one before it",
    "unexplained": "the findings of other rules; the calls of one client to one broker",
}


def _comparisons(operator: dict[str, Any]) -> Iterator[str]:
    """What joins compare beside a key, or with none, and not in the order of time (asof)."""
    name = operator["name"].strip()
    told = operator.get("extra_info", {}).get("Conditions", [])
    conditions = [told] if isinstance(told, str) else told
    of_one_row = {"connection_id", "call_id"}.intersection(re.findall(r"\w+", " ".join(conditions)))
    if name.endswith("NL_JOIN") or name in ("NESTED_LOOP_JOIN", "IE_JOIN", "PIECEWISE_MERGE_JOIN"):
        yield name
    elif name == "HASH_JOIN" and not of_one_row:
        yield from (each for each in conditions if re.search(r" ([<>]=?|!=) ", each))
    for child in operator.get("children", []):
        yield from _comparisons(child)


def test_no_rule_joins_many_by_an_inequality() -> None:
    found = {}
    rules = load_rules()
    with open_tables({}, [rule.query for rule in rules]) as database:
        # Without these it sees that there are no rows, and has no plan.
        database.execute("set disabled_optimizers = 'empty_result_pullup, statistics_propagation'")
        keep_small(database, [rule.query for rule in rules])
        create_tables(database)
        keep_harm(database)
        for rule in rules:
            floors = _floors(rule)
            ((_, plan),) = database.execute(f"explain (format json) {rule.query}", floors).fetchall()
            found[rule.name] = {each for operator in json.loads(plan) for each in _comparisons(operator)}
    assert {name: compared for name, compared in found.items() if compared and name not in _OF_FEW} == {}
    assert found["client_silent"]  # it is seen in this version's plans
    assert set(_OF_FEW) <= found.keys()


def _sent_twice(folder: Path, megabytes: float) -> dict[str, pa.Table]:
    """A capture and a copy of it in one file, long enough to be no echo: all of a connection comes again."""
    folder.mkdir()
    capture = folder / "one.pcap"
    write(capture, rounds(small), megabytes=megabytes, period_ns=SMALL_PERIOD)
    once = capture.read_bytes()
    capture.write_bytes(once + once[PCAP_HEADER:])
    found = kwsniff.analyze(capture, tables=READ)
    assert sum(found.connections["client_retransmitted_bytes"].to_pylist()) > 10_000
    return {name: getattr(found, name) for name in READ}


@pytest.mark.slow
def test_no_rule_compares_what_was_sent_again_with_all_calls_of_a_connection(tmp_path: Path) -> None:
    once, twice = (
        _handed_on(_sent_twice(tmp_path / f"{size}", size), tmp_path / "profile.json") for size in (2, 4)
    )
    assert {name: (once[name], rows) for name, rows in twice.items() if rows > 2.5 * once[name]} == {}


def _long_waits(length: int) -> dict[str, pa.Table]:
    """Somebody is answered every other second, and four more ask each time, answered at the end."""
    end = 2 * length
    calls = [_call(number, 2 * number, 2 * number + 0.01, 1) for number in range(length)]
    calls += [_call(length + number, number / 2, end, 2 + number % 7) for number in range(4 * length)]
    rows = {"api_calls": calls, "latencies": calls, "captures": [_capture(0, end)]}
    return {name: table_of(name, [{"run_id": "run", **row} for row in each]) for name, each in rows.items()}


@pytest.mark.slow
def test_no_rule_compares_calls_that_wait_with_all_that_is_answered_meanwhile(tmp_path: Path) -> None:
    once, twice = (_handed_on(_long_waits(size), tmp_path / "profile.json") for size in (100, 200))
    assert {name: (once[name], rows) for name, rows in twice.items() if rows > 2.5 * once[name]} == {}
