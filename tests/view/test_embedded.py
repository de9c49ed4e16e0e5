"""What is inside bytes fields: every schema vector in the place where it travels, and hand-written bytes."""

import json
import struct
from collections import Counter, defaultdict
from typing import Any

import pytest

from kwsniff.limits import Limits
from kwsniff.view.decode import decode
from kwsniff.view.embedded import find_inner
from kwsniff.view.json_values import document
from kwsniff.view.model import Inner, Surroundings
from tests.traffic.groups import join_group as whole_join_group
from tests.traffic.messages import fetch, metadata
from tests.traffic.wire import Encoder, uvarint
from tests.vectors.golden import TREES, read, renamed
from tests.view.wrapped import KeyValue, envelope, join_group, only, produced, record_set, request, response

# Vectors of 3.9.2 with a tagged field that a later release gave another meaning: see tests/vectors.
_TAKEN = {"ConsumerGroupCurrentMemberAssignmentValue", "OffsetCommitValue", "RemoteLogSegmentMetadataRecord"}


def body(inner: Inner) -> Any:
    assert inner.tree is not None, inner
    return document(inner.tree.body) if inner.tree.body else None


def topic_of(name: str, kind: str) -> str:
    if kind == "metadata":
        return "__remote_log_metadata" if name.startswith("Remote") else "__cluster_metadata"
    if name.startswith(("ShareSnapshot", "ShareUpdate")):
        return "__share_group_state"
    return "__transaction_state" if name.startswith("TransactionLog") else "__consumer_offsets"


def framed(vector: dict[str, Any], keys: dict[int, bytes]) -> KeyValue | None:
    """The record that holds a vector, as its `framing` says; None for what travels elsewhere."""
    data, framing = bytes.fromhex(vector["hex"]), vector["framing"]
    number, version = struct.pack(">h", vector["api_key"]), struct.pack(">h", vector["version"])
    if framing.startswith("record-key:int16(apiKey)"):
        return number + data, b"\0\0"
    if framing.startswith("record-value:int16(version)"):
        return keys[vector["api_key"]], version + data
    if framing.startswith("record-value:uvarint(1)"):
        return None, b"\1" + uvarint(vector["api_key"]) + uvarint(vector["version"]) + data
    if framing.startswith("record:int16(version)") and vector["name"].endswith("Key"):
        return version + data, None
    return None


@pytest.mark.parametrize("tree", TREES)
def test_every_record_of_kafkas_own_topics_is_read_in_its_topic(tree: str):
    results: Counter[str] = Counter()
    keys: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
    sets: defaultdict[str, list[tuple[KeyValue, dict[str, Any]]]] = defaultdict(list)
    for vector in read(f"schemas-{tree}"):
        topic = topic_of(vector["name"], vector["type"])
        found = framed(vector, keys[topic])
        if vector["framing"].startswith("record-key"):
            keys[topic].setdefault(vector["api_key"], found[0] if found and found[0] else b"")
        if found is not None and not (tree == "3.9.2" and vector["name"] in _TAKEN):
            sets[topic].append((found, vector))
    for topic, rows in sets.items():
        records = only(produced(topic, record_set([row for row, _ in rows])))
        assert records.records and records.records.error is None
        for index, (_, vector) in enumerate(rows):
            part = "key" if vector["name"].endswith("Key") else "value"
            inner = records.in_records[0, index, part]
            assert inner.error is None, vector
            assert body(inner) == renamed(vector["json"], {}), vector
            if part == "value" or tree != "3.9.2":
                assert inner.name == vector["name"]
            results[topic] += 1
    assert results == {topic: len(rows) for topic, rows in sets.items()}
    assert results.total() == {"3.9.2": 276, "4.5.0-SNAPSHOT": 555}[tree]


@pytest.mark.parametrize("tree", TREES)
def test_every_consumer_protocol_vector_is_read_inside_join_and_sync_group(tree: str):
    count = 0
    for vector in read(f"schemas-{tree}"):
        if not vector["name"].startswith("ConsumerProtocol"):
            continue
        data = struct.pack(">h", vector["version"]) + bytes.fromhex(vector["hex"])
        if vector["name"].endswith("Subscription"):
            message = decode(join_group("consumer", data))
        else:
            sync = (
                Encoder(True).string("g").i32(1).string("m").string(None).string("consumer").string("range")
            )
            sync.count(1).string("m").blob(data).tags().tags()
            message = decode(request(14, 5, sync, flexible=True))
        assert message.error is None
        inner = only(message)
        assert inner.error is None
        assert (inner.name, inner.version) == (vector["name"], vector["version"])
        assert body(inner) == renamed(vector["json"], {})
        count += 1
    assert count >= 40


def test_every_streams_subscription_is_read_inside_a_subscription():
    count = 0
    for vector in read("schemas-4.5.0-SNAPSHOT"):
        if vector["name"] != "SubscriptionInfoData":
            continue
        # The first field is the version; in the vectors it is as random as the others.
        data = struct.pack(">i", vector["version"]) + bytes.fromhex(vector["hex"])[4:]
        subscription = b"\0\0" + bytes(Encoder(False).count(1).string("orders").blob(data).data)
        (inner,) = only(decode(join_group("consumer", subscription))).inner.values()
        assert body(inner) == renamed(vector["json"], {}) | {"version": vector["version"]}
        count += 1
    assert count == 55


def test_cooperative_user_data_is_not_taken_for_streams():
    subscription = b"\0\1" + bytes(Encoder(False).count(1).string("orders").blob(b"\0\0\0\5").count(0).data)
    assert only(decode(join_group("consumer", subscription))).inner == {}


def test_consumer_versions_above_the_known_ones_are_read_as_the_newest():
    newer = struct.pack(">h", 9) + bytes(Encoder(False).count(0).blob(None).count(0).i32(5).string(None).data)
    inner = only(decode(join_group("consumer", newer + b"more")))
    assert (inner.name, inner.version, inner.error) == ("ConsumerProtocolSubscription", 9, None)
    assert body(inner)["generation_id"] == 5
    assert "version 9 read as 3" in decode(join_group("consumer", newer)).text()


def test_connect_workers_are_read_by_their_protocol_type():
    url = Encoder(False).i16(0).string("http://w:8083/").i64(77)
    inner = only(decode(join_group("connect", bytes(url.data))))
    assert inner.name == "ConnectMetadata"
    assert body(inner) == {"url": "http://w:8083/", "config_offset": 77}


def test_a_schema_registry_writes_json():
    inner = only(decode(join_group("sr", b'{"host": "sr-1"}')))
    assert (inner.name, inner.facts) == ("JSON", {"host": "sr-1"})
    broken = only(decode(join_group("sr", b"{nope")))
    assert broken.facts is None
    assert "not JSON" in broken.note


def test_an_unknown_protocol_type_stays_bytes_with_a_note():
    text = decode(join_group("lottery", b"\1\2\3")).text()
    assert "metadata: 3 bytes 010203  bytes of protocol type 'lottery'" in text


def test_what_breaks_shows_what_was_read_and_the_break():
    cut = struct.pack(">h", 0) + b"\0\0\0\2\0\1a\0\5b"
    message = decode(join_group("consumer", cut))
    inner = only(message)
    assert inner.error == {"code": "unexpected_end", "path": "/topics/1", "offset": 7}
    lines = message.text().splitlines()
    assert any(
        line.endswith(f"metadata: {len(cut)} bytes {cut.hex()}  ConsumerProtocolSubscription v0")
        for line in lines
    )
    assert lines[-2:] == [
        "        topics: ['a']",
        "        ! unexpected_end at byte 7 of it in /topics/1",
    ]
    assert message.error is None


def test_the_protocol_type_of_a_response_is_that_of_its_request():
    call = whole_join_group(5, 4, "g")
    assert call.response is not None
    message = decode(call.response[4:], direction="response", api_key=11, api_version=5)
    (guessed,) = find_inner(message).values()
    assert "guessed" in guessed.note
    (told,) = find_inner(message, Surroundings(protocol_type="consumer")).values()
    assert (told.name, told.note) == ("ConsumerProtocolSubscription", "")
    assert body(told) == body(guessed) == {"topics": ["orders"], "user_data": None}


def test_members_of_a_described_group_say_what_they_want_and_have():
    wants = b"\0\0" + bytes(Encoder(False).count(1).string("orders").blob(None).data)
    has = b"\0\0" + bytes(Encoder(False).count(1).string("orders").count(2).i32(0).i32(1).blob(None).data)
    group = Encoder(False).count(1).i16(0).string("g").string("Stable").string("consumer").string("range")
    group.count(1).string("m").string("c").string("/10.0.0.7").blob(wants).blob(has)
    message = decode(response(group), direction="response", api_key=15, api_version=0)
    assert message.error is None
    inner = {one.path: body(one) for one in message.found_inside().values()}
    assert inner == {
        "/groups/0/members/0/member_metadata": {"topics": ["orders"], "user_data": None},
        "/groups/0/members/0/member_assignment": {
            "assigned_partitions": [{"topic": "orders", "partitions": [0, 1]}],
            "user_data": None,
        },
    }


def test_an_envelope_holds_a_whole_request_and_who_sent_it():
    call = metadata(9, 5, ["orders"])
    principal = b"\0\0" + bytes(Encoder(True).string("User").string("ann").i8(0).tags().data)
    message = decode(envelope(call.request[4:], principal))
    assert message.error is None
    inside, who = (message.found_inside()[place] for place in sorted(message.found_inside()))
    assert inside.message is not None
    assert inside.message.as_dict() == decode(call.request[4:]).as_dict()
    assert body(who) == {"type": "User", "name": "ann", "token_authenticated": False}
    assert call.response is not None
    answer = decode(
        response(Encoder(True).blob(call.response[4:]).i16(0).tags(), flexible=True),
        direction="response",
        api_key=58,
        api_version=0,
    )
    (unknown,) = find_inner(answer).values()
    assert unknown.message is None
    assert "unknown request" in unknown.note
    (known,) = find_inner(answer, Surroundings(asked=(3, 9))).values()
    assert known.message is not None
    plain = decode(call.response[4:], direction="response", api_key=3, api_version=9)
    assert known.message.as_dict() == plain.as_dict()


def test_envelopes_inside_envelopes_end():
    data = metadata(9, 5, ["orders"]).request[4:]
    for _ in range(40):
        data = envelope(data, None)
    text = decode(data).text()
    assert 2 <= text.count("Envelope request v0") <= 8


def test_records_of_a_topic_that_goes_by_its_id_need_its_name():
    offset = struct.pack(">h", 2) + b"\0\1g"
    call = fetch(13, 5, {"__consumer_offsets": {0: record_set([(offset, None)])}})
    assert call.response is not None
    message = decode(call.response[4:], direction="response", api_key=1, api_version=13)
    (closed,) = find_inner(message).values()
    assert closed.in_records == {}
    topic_id = document(message.body)["responses"][0]["topic_id"]  # type: ignore[arg-type]
    (open_,) = find_inner(message, Surroundings(topics={topic_id: "__consumer_offsets"})).values()
    assert body(open_.in_records[0, 0, "key"]) == {"group": "g"}


@pytest.mark.parametrize(
    ("key", "value", "note"),
    [(b"\0\x63abc", None, "key type 99"), (struct.pack(">h", 2) + b"\0\1g", b"\0\x63x", "version 99")],
)
def test_unknown_types_and_versions_of_internal_records_stay_bytes(
    key: bytes, value: bytes | None, note: str
):
    inner = only(produced("__consumer_offsets", record_set([(key, value)])))
    found = inner.in_records[0, 0, "key" if value is None else "value"]
    assert found.tree is None
    assert note in found.note


def test_control_batches_say_what_they_do():
    # Commit marker of KIP-98: key version 0, type 1; value version 0, coordinator epoch 6.
    records = record_set([(b"\0\0\0\1", b"\0\0\0\0\0\6")], attributes=0x30)
    text = produced("orders", records).text()
    assert ", transactional, control, crc ok" in text
    assert "40: COMMIT" in text
    assert "COMMIT: {'coordinator_epoch': 6}" in text


def test_a_record_set_is_shown_with_its_facts():
    whole = record_set([(b"k", b"one"), (None, b"\xff\xfe")])
    records = whole + record_set([(None, None)])[:-1]
    lines = [line.strip() for line in produced("orders", records).text().splitlines()]
    assert lines[-4:-1] == [
        f"batch v2: offsets 40 to 41, 2 records, {len(whole)} bytes, not compressed, CreateTime up to "
        "1970-01-01 00:00:02.000 UTC, leader epoch 0, producer 7 epoch 3 sequence -1, crc ok",
        "40: 1970-01-01 00:00:01.000 UTC, key 'k', value 'one'",
        "41: 1970-01-01 00:00:01.001 UTC, key null, value fffe",
    ]
    assert lines[-1].endswith("bytes of a batch that is cut off")


def test_a_wrong_crc_is_seen():
    records = bytearray(record_set([(None, b"value")]))
    records[-3] ^= 1
    assert "! crc wrong" in produced("orders", bytes(records)).text()


def test_record_sets_of_a_message_share_one_budget():
    from tests.traffic.messages import produce

    two = record_set([(None, b"a"), (None, b"b")])
    message = decode(
        produce(9, 1, {"orders": {0: two, 1: two}}).request[4:],
        limits=Limits.with_changes({"shown_records": 3}),
    )
    first, second = (message.found_inside()[place].records for place in sorted(message.found_inside()))
    assert first and first.error is None
    assert second and second.error and second.error["code"] == "longer_than_limit"
    assert len(second.batches[0]["records"]) == 1


# -- client metrics; field numbers of opentelemetry/proto/metrics/v1/metrics.proto, written by hand ---


def delimited(number: int, data: bytes) -> bytes:
    return uvarint(number << 3 | 2) + uvarint(len(data)) + data


def metric(name: bytes, kind: int, points: int) -> bytes:
    data = b"".join(delimited(1, b"\x09" + bytes(8)) for _ in range(points))
    return delimited(2, delimited(1, name) + delimited(3, b"ms") + delimited(kind, data + b"\x10\x02"))


def push_telemetry(codec: int, metrics: bytes) -> bytes:
    body = Encoder(True).uuid(bytes(16)).i32(1).i8(0).i8(codec).blob(metrics).tags()
    return request(72, 0, body, flexible=True)


METRICS = delimited(
    1,
    delimited(1, b"")
    + delimited(
        2, metric(b"org.apache.kafka.producer.record.queue.time.avg", 5, 2) + metric(b"connections", 7, 1)
    ),
)


def test_metrics_are_named_and_sized():
    import gzip

    for codec, data in ((0, METRICS), (1, gzip.compress(METRICS))):
        message = decode(push_telemetry(codec, data))
        assert message.error is None
        facts = only(message).facts
        assert facts["bytes"] == len(METRICS)
        assert [(one["name"], one["kind"], one["points"], one["unit"]) for one in facts["metrics"]] == [
            ("org.apache.kafka.producer.record.queue.time.avg", "gauge", 2, "ms"),
            ("connections", "sum", 1, "ms"),
        ]
        assert "'connections': sum, 1 points, in 'ms'" in message.text()


@pytest.mark.parametrize(
    ("codec", "data"), [(4, b"junk"), (9, b"junk"), (0, b"\x0a\xff\xff\xff\xff\xff\xff"), (0, b"junk")]
)
def test_what_is_no_metrics_gets_a_note(codec: int, data: bytes):
    inner = only(decode(push_telemetry(codec, data)))
    assert inner.note
    assert not (inner.facts and inner.facts["metrics"])


def test_the_json_form_has_what_is_inside_beside_the_body():
    message = decode(join_group("sr", b'{"a": 1}'))
    full = json.loads(json.dumps(message.as_full_dict()))
    assert {name: full[name] for name in full if name != "inside"} == json.loads(message.json())
    assert full["inside"] == [
        {
            "path": "/protocols/0/metadata",
            "name": "JSON",
            "version": None,
            "facts": {"a": 1},
            "error": None,
            "note": None,
            "inside": [],
        }
    ]
