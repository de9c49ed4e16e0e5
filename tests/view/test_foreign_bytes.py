"""Bytes that no layout explains may be anything, secrets among it: they are hidden unless asked for."""

from __future__ import annotations

import json
import struct

import pytest

from kwsniff.view.decode import decode
from kwsniff.view.redact import hide
from tests.traffic.wire import Encoder
from tests.view.test_redact import forms, is_shown
from tests.view.wrapped import request, response

PLANTED = b"hunter2-hunter2-hunter2"


def _joined(protocol_type: str, metadata: bytes) -> bytes:
    """JoinGroup v1: group, two timeouts, member, type, protocols of name and bytes."""
    body = Encoder(False).string("g").i32(1).i32(1).string("m").string(protocol_type).count(1)
    return request(11, 1, body.string("p").blob(metadata))


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    return bytes([number << 3 | 2, len(data)]) + data


def _pushed(body: Encoder) -> bytes:
    return request(72, 0, body, flexible=True)


SUBSCRIPTION = struct.pack(">hi", 1, 1) + b"\0\6orders" + struct.pack(">i", len(PLANTED)) + PLANTED + bytes(4)
REGISTRY = b'{"host": "reg", "port": 8081, "token": "' + PLANTED + b'", "more": ["' + PLANTED + b'"]}'
METRIC = _field(1, b"some.metric") + _field(2, PLANTED)
TELEMETRY = _field(1, _field(2, _field(2, METRIC)))
"""MetricsData > resource_metrics > scope_metrics > metrics > name and description."""

MESSAGES = {
    "user data of an assignor": (_joined("consumer", SUBSCRIPTION), "orders"),
    "members of a type that is not known": (_joined("custom", PLANTED), "custom"),
    "members of a schema registry": (_joined("sr", REGISTRY), "reg"),
    "telemetry": (
        # PushTelemetry v0: client's id, subscription, is it the last, codec, metrics.
        _pushed(Encoder(True).uuid(bytes(16)).i32(1).i8(0).i8(0).blob(TELEMETRY).tags()),
        "some.metric",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(MESSAGES))
def test_what_no_layout_explains_is_hidden_and_the_rest_is_shown(what: str) -> None:
    data, public = MESSAGES[what]
    message = decode(data)
    assert message.error is None
    assert is_shown(PLANTED, forms(message))
    hide(message)
    assert not is_shown(PLANTED, forms(message))
    assert public in forms(message)


@pytest.mark.parametrize("what", list(MESSAGES))
@pytest.mark.parametrize("asked", ["payload", "secrets"])
def test_it_is_shown_when_it_is_asked_for(what: str, asked: str) -> None:
    message = decode(MESSAGES[what][0])
    hide(message, payload=asked == "payload", secrets=asked == "secrets")
    assert is_shown(PLANTED, forms(message))


@pytest.mark.parametrize("api_key", [33, 36, 38, 44, 51])
def test_an_answer_of_a_version_that_is_not_known_may_repeat_what_was_asked(api_key: int) -> None:
    data = response(Encoder(False).i32(0).string(PLANTED.decode()))
    message = decode(data, direction="response", api_key=api_key, api_version=99)
    hide(message)
    assert not is_shown(PLANTED, forms(message))


def test_what_is_said_of_scram_credentials_is_hidden() -> None:
    # AlterUserScramCredentials v0: throttle time, results of user, error, message.
    body = Encoder(True).i32(0).count(1).string("alice").i16(58).string(f"bad password {PLANTED.decode()}")
    data = response(body.tags().tags(), flexible=True)
    message = decode(data, direction="response", api_key=51, api_version=0)
    assert message.error is None
    hide(message)
    assert not is_shown(PLANTED, forms(message))
    assert "alice" in json.dumps(message.as_dict())
