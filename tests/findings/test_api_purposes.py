"""The traits of layouts decide which calls a rule counts; a new kind of group needs no change in a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.findings.api_purposes import PURPOSES, names_of
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.rule import load_rules, read_rules
from kwsniff.findings.views import open_tables
from kwsniff.layout.catalog import ENVIRONMENT
from kwsniff.tables.schema import TABLES, arrow_schema

from .scripted import find, table_of
from .test_stretches import SECOND

KEY = 9000
BODY = "\nrequest\n    group_id string group\nresponse\n    error_code int16 error\n"


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor's fifth kind of group, with a heartbeat of its own; and an API beside it without a trait."""
    for number, (name, traits) in enumerate((("MeshHeartbeat", "group heartbeat"), ("MeshRoll", ""))):
        line = f"api {KEY + number} {name} 0 {traits}".rstrip()
        (tmp_path / f"{KEY + number}_{name.lower()}.layout").write_text(line + BODY)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))


def _evicted(api: str) -> dict[str, list[dict[str, Any]]]:
    """A member heartbeats, and is answered UNKNOWN_MEMBER_ID."""
    who = {
        "connection_id": 1, "client_id": "shop", "client_address": "10.0.0.2", "client_port": 4000,
        "broker_address": "10.0.0.1", "broker_port": 9092, "capture": "c",
    }  # fmt: skip
    calls = [
        {
            **who, "call_id": number, "api_key": KEY, "api_name": api, "api_version": 0, "status": "answered",
            "group_id": "mesh", "member_id": "m-1", "request_time": number * SECOND,
            "response_time": number * SECOND, "response_end_time": number * SECOND, "latency_ns": 1_000_000,
            "error_code": 25 if number == 4 else 0,
        }
        for number in range(5)
    ]  # fmt: skip
    error = {
        **calls[-1], "error_code": 25, "error_name": "UNKNOWN_MEMBER_ID", "path": "/error_code",
        "retriable": False,
    }  # fmt: skip
    connection = {
        **who, "protocol": "kafka", "first_time": 0, "last_time": 5 * SECOND, "handshake": True,
        "client_missing_bytes": 0, "broker_missing_bytes": 0, "client_bytes": 500, "broker_bytes": 500,
    }  # fmt: skip
    return {"api_calls": calls, "error_codes": [error], "connections": [connection]}


@pytest.mark.usefixtures("mesh")
def test_a_fifth_kind_of_group_is_counted_by_its_trait_alone() -> None:
    (found,) = find("session_expired", _evicted("MeshHeartbeat"))
    assert "shop" in found.text
    assert find("session_expired", _evicted("MeshRoll")) == []


def test_without_the_layout_its_heartbeats_are_unknown() -> None:
    assert find("session_expired", _evicted("MeshHeartbeat")) == []
    assert find("session_expired", _evicted("Heartbeat")) != []


def test_members_that_leave_by_an_epoch_are_counted_in_every_kind_of_group() -> None:
    for api in ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"):
        figures = Figures()
        rows = table_of("api_calls", [{"api_name": api, "generation": epoch} for epoch in (3, -1, -1, 0)])
        texts = [field.name for field in arrow_schema(TABLES["api_calls"]) if field.type == pa.string()]
        for name in texts:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, rows[name].dictionary_encode())
        figures.add("api_calls", rows.combine_chunks().to_batches()[0])
        assert figures.as_dict()["leaves"] == 2


@pytest.mark.parametrize(
    ("purpose", "apis"),
    [
        # of Kafka's protocol guide and KIPs 848, 932, 1071
        (
            "is_heartbeat",
            {"Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"},
        ),
        ("is_group_wait", {"JoinGroup", "SyncGroup"}),
        ("is_fetch", {"Fetch", "ShareFetch"}),
        ("is_commit", {"OffsetCommit", "TxnOffsetCommit"}),
        ("is_topic_change", {"CreateTopics", "DeleteTopics", "CreatePartitions"}),
        ("is_transaction_step", {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"}),
        ("needs_create", {"CreateTopics"}),
        ("needs_write", {"Produce", "AddPartitionsToTxn"}),
        ("is_sasl", {"SaslHandshake", "SaslAuthenticate"}),
    ],
)
def test_purposes_are_those_of_the_protocol(purpose: str, apis: set[str]) -> None:
    assert names_of(purpose) == apis


def test_offsets_are_listed_with_describe_as_brokers_check() -> None:
    assert "ListOffsets" in names_of("needs_describe") - names_of("needs_read")


def test_every_purpose_has_an_api_and_is_used() -> None:
    assert all(names_of(purpose) for purpose in PURPOSES)
    folder = Path(__file__).parents[2] / "kwsniff"
    paths = [*folder.rglob("*.py"), *folder.rglob("*.sql")]
    texts = [path.read_text("utf-8") for path in paths if path.stem != "api_purposes"]
    texts += [rule.query for rule in (*load_rules(), *read_rules("upgrade"))]
    used = "\n".join(texts)
    assert [purpose for purpose in PURPOSES if purpose not in used] == []


def test_a_call_without_a_name_has_no_purpose() -> None:
    query = "select is_heartbeat('Heartbeat'), is_heartbeat('Fetch'), is_heartbeat(null::varchar)"
    with open_tables({}, [query]) as database:
        assert database.execute(query).fetchall() == [(True, False, None)]
