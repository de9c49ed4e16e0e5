"""The public decode function: breaks, unknown things, fallbacks; bytes written out by hand."""

import json
import struct

import pytest

import kwsniff
from kwsniff.errors import UsageError
from kwsniff.view.decode import Message

# ApiVersions v0 request, correlation id 7, client id "me".
API_VERSIONS_0 = b"\0\x12\0\0\0\0\0\x07\0\x02me"
# Metadata v0 request with the topics "a" and "bc".
METADATA_0 = b"\0\x03\0\0\0\0\0\x07\0\x02me" + b"\0\0\0\x02\0\x01a\0\x02bc"


def decoded(data: bytes, **kwargs: object) -> dict[str, object]:
    return json.loads(kwsniff.decode(data, **kwargs).json())


def test_request():
    assert decoded(METADATA_0) == {
        "api_key": 3,
        "api_version": 0,
        "header": {"request_api_key": 3, "request_api_version": 0, "correlation_id": 7, "client_id": "me"},
        "body": {"topics": [{"name": "a"}, {"name": "bc"}]},
        "unknown_tags": [],
        "error": None,
    }


def test_break_inside_an_array_names_the_element_and_keeps_what_came_before():
    got = decoded(METADATA_0[:-1])
    assert got["body"] == {"topics": [{"name": "a"}]}
    assert got["error"] == {"code": "unexpected_end", "path": "/topics/1/name", "offset": 19}


def test_break_inside_an_array_of_strings_names_the_string():
    # DeleteTopics v1: topic names, timeout.
    data = b"\0\x14\0\x01\0\0\0\x07\xff\xff" + b"\0\0\0\x02\0\x01a\0\x09b"
    got = decoded(data)
    assert got["body"] == {"topic_names": ["a"]}
    assert got["error"] == {"code": "unexpected_end", "path": "/topic_names/1", "offset": 17}


def test_bytes_left_over_are_an_error_at_the_first_of_them():
    got = decoded(API_VERSIONS_0 + b"??")
    assert got["body"] == {}
    assert got["error"] == {"code": "bytes_left_over", "path": "", "offset": 12}


@pytest.mark.parametrize(
    ("size", "path", "offset"),
    [
        (0, "header:/request_api_key", 0),
        (3, "header:/request_api_version", 2),
        (6, "header:/correlation_id", 4),
        (11, "header:/client_id", 8),
    ],
)
def test_break_in_the_header(size: int, path: str, offset: int):
    got = decoded(API_VERSIONS_0[:size])
    assert got["body"] is None
    assert got["error"] == {"code": "unexpected_end", "path": path, "offset": offset}


def test_unknown_tag_of_the_header():
    # ApiVersions v3: compact strings "a" and "b".
    data = b"\0\x12\0\x03\0\0\0\x07\0\x02me\x01\x05\x02\xab\xcd" + b"\x02a\x02b\0"
    assert decoded(data)["unknown_tags"] == [{"path": "header:", "tag": 5, "hex": "abcd"}]


def test_version_above_the_known_ones_has_a_header_and_no_body():
    got = decoded(b"\0\x12\x03\xe8\0\0\0\x07\0\x02me\0" + b"anything")
    assert got["header"] == {
        "request_api_key": 18,
        "request_api_version": 1000,
        "correlation_id": 7,
        "client_id": "me",
    }
    assert got["body"] is None
    assert got["error"] == {"code": "unknown_version", "path": "header:/request_api_version", "offset": 2}


@pytest.mark.parametrize("key", [17, 47])
def test_version_above_the_known_ones_of_an_api_that_never_became_flexible(key: int):
    # A tagged section would be broken here: the count 0xff has no second byte.
    got = decoded(struct.pack(">hhih", key, 99, 7, 0) + b"\xff")
    assert got["header"] == {
        "request_api_key": key,
        "request_api_version": 99,
        "correlation_id": 7,
        "client_id": "",
    }


@pytest.mark.parametrize("tail", [b"\0body", b"\x01\x02\x03", b"\xff"])
def test_unknown_api(tail: bytes):
    got = decoded(b"\x27\x10\0\x01\0\0\0\x07\0\x02me" + tail)
    header = got["header"]
    assert isinstance(header, dict)
    assert header["client_id"] == "me"
    assert got["unknown_tags"] == []
    assert got["error"] == {"code": "unknown_api", "path": "header:/request_api_key", "offset": 0}


def test_response_of_an_unknown_version_keeps_its_correlation_id():
    got = decoded(b"\0\0\0\x07\0rest", direction="response", api_key=1, api_version=99)
    assert got["header"] == {"correlation_id": 7}
    assert got["error"] == {"code": "unknown_version", "path": "", "offset": 4}


def test_broker_that_does_not_know_the_api_versions_version_answers_in_version_0():
    data = b"\0\0\0\x07" + b"\0\x23" + b"\0\0\0\x01" + b"\0\x12\0\0\0\x03"
    for version in (1, 2, 3, 4):
        got = decoded(data, direction="response", api_key=18, api_version=version)
        assert got["error"] is None
        assert got["body"] == {
            "error_code": 35,
            "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}],
        }


def test_malformed_utf8_is_replaced():
    assert decoded(b"\0\x12\0\0\0\0\0\x07\0\x03a\xffb")["header"] == {
        "request_api_key": 18,
        "request_api_version": 0,
        "correlation_id": 7,
        "client_id": "a\ufffdb",
    }


def test_integers_keep_full_precision():
    # AddOffsetsToTxn v0: transactional id, producer id, epoch, group.
    data = b"\0\x19\0\0\0\0\0\x07\xff\xff" + b"\0\x01t" + struct.pack(">q", 2**63 - 1) + b"\0\x05\0\x01g"
    assert '"producer_id": 9223372036854775807' in kwsniff.decode(data).json()


def test_response_needs_api_and_version():
    with pytest.raises(UsageError, match="api_key and api_version"):
        kwsniff.decode(b"\0\0\0\x07", direction="response")
    with pytest.raises(UsageError, match="direction"):
        kwsniff.decode(b"\0\0\0\x07", direction="sideways")  # type: ignore[arg-type]


def test_text_shows_everything_up_to_the_break():
    text = kwsniff.decode(METADATA_0[:-1]).text()
    assert text.splitlines() == [
        "Metadata request v0 (key 3), 22 bytes",
        "header",
        "  request_api_key: 3  Metadata",
        "  request_api_version: 0",
        "  correlation_id: 7",
        "  client_id: 'me'",
        "body",
        "  topics: [1 of 2]",
        "    0:",
        "      name: 'a'",
        "! unexpected_end at byte 19 in /topics/1/name, 3 bytes from there on:",
        "  000262",
    ]


def test_text_names_error_codes():
    data = b"\0\0\0\x07" + b"\0\x23" + b"\0\0\0\0"
    text = kwsniff.decode(data, direction="response", api_key=18, api_version=0).text()
    assert "error_code: 35  UNSUPPORTED_VERSION" in text


def test_text_escapes_control_characters():
    assert "\\x1b[31m" in kwsniff.decode(b"\0\x12\0\0\0\0\0\x07\0\x05\x1b[31m").text()


def test_hexdump_puts_fields_beside_their_bytes():
    lines = kwsniff.decode(METADATA_0).hexdump().splitlines()
    assert lines[0].startswith(
        "00000000  00 03 00 00 00 00 00 07  00 02 6d 65 00 00 00 02  |..........me....|"
    )
    assert "client_id='me'" in lines[0]
    assert lines[1].endswith("name='a'  name='bc'")


def test_redaction_hides_secrets_in_every_form():
    from kwsniff.view.redact import redact

    # SaslAuthenticate v0: the token in clear.
    message = kwsniff.decode(b"\0\x24\0\0\0\0\0\x07\xff\xff" + b"\0\0\0\x0a\0me\0secret")
    assert "secret" in message.hexdump()
    redact(message.tree)
    body = message.as_dict()["body"]
    assert body == {"auth_bytes": "<redacted, 10 bytes>"}
    assert "secret" not in message.hexdump()
    assert "secret" not in message.text()


def test_text_counts_the_records_of_a_record_set():
    from tests.core.test_records import batch

    records = batch(count=3, body=b"abc") + batch(count=4)[:-1]
    # Produce v3: transactional id, acks, timeout, one topic "t" with one partition.
    data = b"\0\0\0\x03\0\0\0\x07\xff\xff" + b"\xff\xff\0\x01\0\0\0\x09" + b"\0\0\0\x01\0\x01t"
    data += b"\0\0\0\x01\0\0\0\x05" + struct.pack(">i", len(records)) + records
    assert "1 batch, 3 records, then 60 bytes" in kwsniff.decode(data).text()


def api_versions_response(tags: bytes) -> Message:
    # v3: error 0, no keys, throttle 0, then the tagged section. Tag 1 is finalized_features_epoch, an int64.
    data = b"\0\0\0\x07" + b"\0\0" + b"\x01" + b"\0\0\0\0" + tags
    return kwsniff.decode(data, direction="response", api_key=18, api_version=3)


def test_known_tag_with_a_wrong_size_is_read_as_kafka_reads_it_and_reported():
    epoch = struct.pack(">q", 5)
    message = api_versions_response(b"\x02" + b"\x01\x03" + epoch + b"\x09\x01\xaa")
    assert message.error is None
    assert message.as_dict()["body"]["finalized_features_epoch"] == 5
    assert message.as_dict()["unknown_tags"] == [{"path": "", "tag": 9, "hex": "aa"}]
    assert message.tree.wrong_sizes == [("/finalized_features_epoch", -5)]
    assert "! /finalized_features_epoch used 5 bytes more than its declared size" in message.text()


def test_last_of_two_equal_tags_counts():
    section = b"\x02" + b"\x01\x08" + struct.pack(">q", 5) + b"\x01\x08" + struct.pack(">q", 6)
    assert api_versions_response(section).as_dict()["body"]["finalized_features_epoch"] == 6


def test_absent_tagged_fields_are_absent():
    body = api_versions_response(b"\0").as_dict()["body"]
    assert list(body) == ["error_code", "api_keys", "throttle_time_ms"]
