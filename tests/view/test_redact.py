"""What must not be seen is in none of the forms in which a message is shown."""

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.view.decode import Message, decode
from kwsniff.view.redact import hide
from tests.traffic.groups import sasl_authenticate
from tests.traffic.messages import metadata
from tests.traffic.wire import Encoder, uvarint
from tests.vectors.golden import TREES, read
from tests.view.wrapped import envelope, produced, record_set, request, response

TOKEN = b"\0ann\0correct horse battery"

# By section 3.9 of Kafka's protocol facts: bytes that are secret, under the names of Kafka's JSON.
SECRET_FIELDS = {"authBytes", "hmac", "salt", "saltedPassword"}


def forms(message: Message) -> str:
    """Everything a message is shown as, one after the other."""
    return "\n".join([message.text(), json.dumps(message.as_full_dict()), message.hexdump()])


def is_shown(secret: bytes, shown: str) -> bool:
    """As text, hex, hexdump or anywhere inside base64."""
    if secret.hex() in shown or " ".join(f"{byte:02x}" for byte in secret[:4]) in shown:
        return True
    if secret.isascii() and secret.decode() in shown:
        return True
    return any(secret in b64decode(word) for word in shown.split('"') if is_base64(word))


def is_base64(word: str) -> bool:
    try:
        return b64encode(b64decode(word, validate=True)).decode() == word
    except ValueError:
        return False


def secrets_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in SECRET_FIELDS and item:
                yield b64decode(item)
            yield from secrets_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from secrets_in(item)


@pytest.mark.parametrize("tree", TREES)
def test_no_secret_of_any_vector_is_shown(tree: str):
    checked = 0
    for vector in read(f"messages-{tree}"):
        secrets = [secret for secret in secrets_in(vector["json"]) if len(secret) >= 6]
        if not secrets:
            continue
        message = decode(
            bytes.fromhex(vector["hex"]),
            direction=vector["direction"],
            api_key=vector["api_key"],
            api_version=vector["version"],
        )
        assert any(is_shown(secret, forms(message)) for secret in secrets)
        hide(message)
        shown = forms(message)
        assert not [secret for secret in secrets if is_shown(secret, shown)], vector
        checked += 1
    assert checked >= 30


def test_secrets_are_shown_when_they_are_asked_for():
    message = decode(sasl_authenticate(2, 1, TOKEN, b"").request[4:])
    hide(message, secrets=True)
    assert is_shown(TOKEN, forms(message))


@pytest.mark.parametrize("cut", [14, 16, 20, 30])
def test_secrets_of_a_message_that_breaks_are_hidden(cut: int):
    data = sasl_authenticate(1, 1, TOKEN, b"").request[4:]
    for broken in (data[:-cut], data[:10] + data[10:].replace(TOKEN, b"\xff" * 4 + TOKEN)):
        message = decode(broken)
        hide(message)
        assert not is_shown(TOKEN[:12], forms(message))


def test_secrets_of_a_version_that_is_not_known_are_hidden():
    message = decode(request(36, 99, TOKEN, flexible=True))
    assert is_shown(TOKEN, forms(message))
    hide(message)
    assert not is_shown(TOKEN, forms(message))
    assert "hidden" in message.text()


def test_unknown_tags_beside_secrets_are_hidden():
    tagged = Encoder(True).blob(b"x")
    tagged.data += b"\1\x07" + uvarint(len(TOKEN)) + TOKEN
    message = decode(request(36, 2, tagged, flexible=True))
    assert message.error is None
    assert is_shown(TOKEN, forms(message))
    hide(message)
    assert not is_shown(TOKEN, forms(message))


def test_bytes_of_a_vendors_api_are_hidden_unless_asked_for():
    for payload in (False, True):
        message = decode(request(501, 0, b"\0customer data"))
        hide(message, payload=payload)
        assert is_shown(b"customer data", forms(message)) is payload


@pytest.mark.parametrize(
    ("name", "is_hidden"),
    [
        ("sasl.jaas.config", True),
        ("ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("my.client.secret", True),
        ("listener.name.x.ssl.truststore.PASSWORD", True),
        ("retention.ms", False),
        ("passphrase", True),
        ("ldap.pwd", True),
        ("db.pass", True),
        ("apikey", True),
        ("accessKey", True),
        ("authorization", True),
        ("connection.string", True),
        ("basic.auth.user.info", True),
        ("confluent.license", True),
        ("webhook.url", True),
        ("monkey.business", True),
        ("", True),
        ("SCRAM-SHA-512", True),
        ("key.converter", False),
        ("compression.type", False),
        ("producer_byte_rate", False),
        ("listener.name.internal.ssl.keystore.location", False),
        ("listener.name.internal.ssl.keystore.password", True),
        ("listener.name.internal.scram-sha-512.sasl.login.class", False),
        ("listener.name.internal.plain.sasl.jaas.config", True),
    ],
)
def test_settings_are_hidden_by_their_names(name: str, is_hidden: bool):
    # IncrementalAlterConfigs v0: resources of type, name, configs of name, operation, value.
    body = (
        Encoder(False).count(1).i8(4).string("1").count(1).string(name).i8(0).string("hunter2-hunter2").i8(0)
    )
    message = decode(request(44, 0, body))
    assert message.error is None
    hide(message)
    assert is_shown(b"hunter2-hunter2", forms(message)) is not is_hidden


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            "Invalid value hunter2 for configuration ldap.pwd: must be longer",
            "Invalid value <redacted> for configuration ldap.pwd: must be longer",
        ),
        ("Invalid value -7 for configuration retention.ms: at least -1", None),
        (
            "Invalid value a for b for configuration my.plugin.url",
            "Invalid value <redacted> for configuration my.plugin.url",
        ),
        (
            "Invalid value a for configuration retention.ms hunter2 for configuration ldap.pwd: too short",
            "Invalid value <redacted> for configuration ldap.pwd: too short",
        ),
        ("Topic 'orders' already exists.", None),
        ("Topic 'eu.orders' has no retention.ms of '7'.", None),
        ("Could not parse 'hunter2' of webhook.url", "Could not parse <redacted> of webhook.url"),
    ],
)
def test_a_complaint_does_not_repeat_a_value_that_is_not_public(told: str, shown: str | None):
    # IncrementalAlterConfigs response v0: throttle time, resources of error, message, type, name.
    data = response(Encoder(False).i32(0).count(1).i16(40).string(told).i8(4).string("1"))
    message = decode(data, direction="response", api_key=44, api_version=0)
    assert message.error is None
    hide(message)
    assert (shown or told) in json.loads(json.dumps(message.as_full_dict()), strict=False).__repr__()
    assert shown is None or told not in forms(message)


def described(name: str, value: str, is_sensitive: bool, config_type: int, synonym: str) -> bytes:
    """DescribeConfigs response v3 of one setting with one synonym."""
    body = Encoder(False).i32(0).count(1).i16(0).string(None).i8(2).string("password-topic").count(1)
    body.string(name).string(value).i8(0).i8(1).i8(is_sensitive)
    return response(body.count(1).string(name).string(synonym).i8(1).i8(config_type).string(None))


@pytest.mark.parametrize(("is_sensitive", "config_type"), [(True, 2), (False, 9), (False, 2)])
def test_settings_are_hidden_when_the_broker_says_so(is_sensitive: bool, config_type: int):
    data = described("retention.ms", "value-of-it", is_sensitive, config_type, "value-of-synonym")
    message = decode(data, direction="response", api_key=32, api_version=3)
    assert message.error is None
    hide(message)
    hidden = is_sensitive or config_type == 9
    assert is_shown(b"value-of-it", forms(message)) is not hidden
    assert is_shown(b"value-of-synonym", forms(message)) is not hidden


def test_a_setting_that_is_cut_off_before_it_says_what_it_is_stays_hidden():
    data = described("retention.ms", "value-of-it", False, 2, "other")
    end = data.index(b"value-of-it") + len(b"value-of-it")
    for cut in (end, end + 1, end + 2):
        message = decode(data[:cut], direction="response", api_key=32, api_version=3)
        assert message.error is not None
        hide(message)
        assert not is_shown(b"value-of-it", forms(message))


def test_what_an_envelope_carries_is_redacted_inside_and_outside():
    inner = sasl_authenticate(2, 1, TOKEN, b"").request[4:]
    message = decode(envelope(inner, None))
    assert is_shown(TOKEN, forms(message))
    hide(message)
    shown = forms(message)
    assert not is_shown(TOKEN, shown)
    assert "SaslAuthenticate request v2" in shown
    # What is no secret is still to be seen inside.
    message = decode(envelope(metadata(9, 5, ["orders"]).request[4:], None))
    hide(message)
    assert "name: 'orders'" in message.text()


def test_keys_and_values_of_records_are_hidden_and_sized():
    data = record_set([(b"card-number", b"4111111111111111")])
    message = produced("orders", data)
    assert is_shown(b"4111111111111111", forms(message))
    hide(message)
    shown = forms(message)
    assert not is_shown(b"4111111111111111", shown)
    assert not is_shown(b"card-number", shown)
    assert "key 11 bytes, value 16 bytes" in shown
    message = produced("orders", data)
    hide(message, payload=True)
    assert "key 'card-number', value '4111111111111111'" in message.text()


def test_secrets_in_records_of_the_metadata_log_are_hidden_even_with_payload():
    # UserScramCredentialRecord v0: name, mechanism, salt, stored key, server key, iterations, tags.
    credential = Encoder(True).string("ann").i8(1).blob(b"saltsaltsalt").blob(b"stored-key-of-ann")
    credential.blob(b"server-key").i32(4096).tags()
    value = b"\1\x0b\0" + bytes(credential.data)
    for payload in (False, True):
        message = produced("__cluster_metadata", record_set([(None, value), (None, b"\1\x14\0\0")]))
        assert is_shown(b"stored-key-of-ann", forms(message))
        hide(message, payload=payload)
        shown = forms(message)
        assert not is_shown(b"stored-key-of-ann", shown)
        assert "name: 'ann'" in shown


@pytest.mark.parametrize(
    "message",
    [
        decode(sasl_authenticate(2, 1, TOKEN, b"").request[4:]),
        decode(envelope(sasl_authenticate(2, 1, TOKEN, b"").request[4:], None)),
        produced("orders", record_set([(b"k", b"value"), (None, None)])),
    ],
    ids=["secret", "envelope", "records"],
)
def test_hiding_twice_changes_nothing(message: Message):
    hide(message)
    once = forms(message)
    hide(message)
    assert forms(message) == once


def test_secret_names_follow_the_layouts():
    fields = {
        field.name
        for api in load_catalog().apis
        for direction in (0, 1)
        for version in range(12)
        if (program := load_catalog().program(api, version, direction))
        for field in program.fields
        if field is not None and field.meaning.name == "SECRET"
    }
    # error_message: what a broker says of SCRAM credentials
    assert fields == {"auth_bytes", "hmac", "salt", "salted_password", "error_message"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("tree", TREES)
def test_damaged_messages_are_shown_without_complaint(tree: str):
    count = 0
    for vector in read(f"mutations-{tree}"):
        body = bytes.fromhex(vector["body_hex"])
        version = load_catalog().header_version(
            vector["api_key"], vector["version"], vector["direction"] == "response"
        )
        if vector["direction"] == "request":
            data = struct.pack(">hhi", vector["api_key"], vector["version"], 1)
            data += b"" if version == 0 else b"\xff\xff" + (b"\0" if version == 2 else b"")
        else:
            data = struct.pack(">i", 1) + (b"\0" if version else b"")
        arguments = {"api_key": vector["api_key"], "api_version": vector["version"]}
        message = decode(data + body, direction=vector["direction"], **arguments)
        assert forms(message)
        hide(message)
        assert forms(message)
        count += 1
    assert count >= 3000
