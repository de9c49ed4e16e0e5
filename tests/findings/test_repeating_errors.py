"""Errors of normal work: a rule names each of them where it repeats, and none of them where it passes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from kwsniff.findings.client_settings import queries_of_settings
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.client_rates import LASTING
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import open_tables
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.causes import Cause
from tests.findings.scripted import table_of

SECOND = 10**6
BROKER = {"run_id": "run", "broker_address": "10.0.0.1", "broker_port": 9092, "connection_id": 1}
APIS = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "JoinGroup", "SyncGroup",
    "Heartbeat", "ConsumerGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "InitProducerId",
    "AddPartitionsToTxn", "EndTxn", "CreateTopics", "DescribeAcls", "ApiVersions",
)  # fmt: skip
ABOUT_TOPICS = {
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "ShareFetch",
    "ShareAcknowledge",
}


def _excluded() -> dict[int, Cause]:
    """Codes that `persistent_error` does not name when they come once."""
    causes = load_catalog().causes.values()
    return {each.code: each for each in causes if each.findings or each.passes_s is not None}


def _client(code: int) -> str:
    return f"client-{code}-"


def _refused(code: int, api: str, times: Sequence[float], *, topics: bool) -> dict[str, list[dict[str, Any]]]:
    """Calls of a client of its own, refused at these seconds."""
    errors = load_catalog().errors
    calls, told = [], []
    for number, at in enumerate(times):
        moment = int(at * SECOND)
        call = {
            **BROKER,
            "call_id": code * 1000 + number,
            "api_name": api,
            "client_id": _client(code),
            "error_code": code,
        }
        asked = {
            "request_time": moment,
            "response_time": moment,
            "response_end_time": moment,
            "status": "answered",
        }
        group = f"group-{code}"
        calls.append(
            {
                **call,
                **asked,
                "group_id": group,
                "generation": 3,
                "member_id": f"member-{code}",
                "latency_ns": 1000,
            }
        )
        about = {"topic": f"topic-{code}", "partition": 0} if topics else {}
        error = {
            "error_name": errors[code].name,
            "retriable": errors[code].retriable,
            "response_time": moment,
        }
        told.append({**call, **error, **about})
    return {"api_calls": calls, "error_codes": told}


def _went_well(code: int, api: str, at: float) -> dict[str, list[dict[str, Any]]]:
    moment = int(at * SECOND)
    call = {
        **BROKER,
        "call_id": code * 1000 + 999,
        "api_name": api,
        "client_id": _client(code),
        "error_code": 0,
    }
    asked = {
        "request_time": moment,
        "response_time": moment,
        "response_end_time": moment,
        "status": "answered",
    }
    place = {"topic": f"topic-{code}", "partition": 0, "time": moment}
    return {"api_calls": [{**call, **asked, "group_id": f"group-{code}"}], "partitions": [{**call, **place}]}


def _found(*parts: dict[str, list[dict[str, Any]]]) -> list[Finding]:
    """What the rules find that are worth asking."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        for table, some in part.items():
            rows.setdefault(table, []).extend(some)
    figures, tables = Figures(), {name: table_of(name, some) for name, some in rows.items()}
    for name, table in tables.items():
        for batch in table.to_batches():
            figures.add(name, batch)
    asked = figures.worth_asking()
    queries = [*(rule.query for rule in asked), *queries_of_settings(asked)]
    with open_tables(tables, queries) as database:
        return [each for each in evaluate(database, rules=asked, total=0) if each.severity != "info"]


def _names(findings: Sequence[Finding], code: int) -> set[str]:
    """Rules whose findings name the client."""
    client = _client(code)
    return {
        each.finding
        for each in findings
        if client in (each.subject, *each.parties.values()) or client in each.text
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize("topics", [True, False], ids=["topic", "no_topic"])
@pytest.mark.parametrize("api", APIS)
def test_each_error_that_repeats_is_named_by_a_rule(api: str, topics: bool) -> None:
    every = [10 + 3.0 * number for number in range(25)]
    about = topics and api in ABOUT_TOPICS
    findings = _found(*(_refused(code, api, every, topics=about) for code in _excluded()))
    assert [code for code in _excluded() if not _names(findings, code)] == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("code", sorted(_excluded()))
def test_the_rules_that_speak_of_an_error_are_those_that_its_cause_names(code: int) -> None:
    named = _excluded()[code].findings
    api = {
        1: "Fetch",
        33: "SaslHandshake",
        58: "SaslAuthenticate",
        82: "Heartbeat",
        111: "ConsumerGroupHeartbeat",
    }.get(code, "Produce")
    found = _names(_found(_refused(code, api, [10 + number for number in range(80)], topics=True)), code)
    assert found.intersection(named) or not named
    assert not named or "persistent_error" not in found


@pytest.mark.sample(4)
@pytest.mark.parametrize("api", APIS)
def test_errors_of_normal_work_pass_unnamed(api: str) -> None:
    passing = [code for code, cause in _excluded().items() if cause.passes_s is not None]
    if api != "ApiVersions":
        passing.remove(35)  # another version is asked for only there
    parts = [_refused(code, api, [10, 10.2, 10.9, 11.5], topics=api in ABOUT_TOPICS) for code in passing]
    parts += [_went_well(code, api, 12) for code in passing]
    assert [(each.finding, each.subject) for each in _found(*parts) if each.finding != "commit_refused"] == []


def test_a_member_that_works_while_its_group_waits_is_named_after_a_minute() -> None:
    times = [3.0 * number for number in range(1, 26)]
    for last, named in ((19, set()), (25, {"persistent_error"})):
        parts = _refused(27, "Heartbeat", times[:last], topics=False), _went_well(27, "Heartbeat", 100)
        assert _names(_found(*parts), 27) == named


def test_the_list_of_the_gate_is_that_of_the_causes() -> None:
    (rule,) = (each for each in load_rules() if each.name == "persistent_error")
    (beside,) = (floors["errors_beside"] for floors in rule.when if "errors_beside" in floors)
    assert set(beside) == {0, *_excluded()}
    unconditional = {code for code, cause in _excluded().items() if cause.passes_s is None} - {1, 3, 17, 100}
    assert set(LASTING) == set(_excluded()) - unconditional


def test_findings_that_causes_name_are_rules() -> None:
    names = {rule.name for rule in load_rules()}
    for cause in load_catalog().causes.values():
        assert names.issuperset(cause.findings), cause.name
        for finding in cause.findings:
            (rule,) = (each for each in load_rules() if each.name == finding)
            assert re.search(rf"\b{cause.code}\b", rule.query), f"{finding} does not ask for {cause.code}"
