"""Calls that carry what nobody else may know: credentials, delegation tokens, sensitive configuration."""

from __future__ import annotations

from collections.abc import Mapping

from tests.traffic.exchange import Exchange, Facts, exchange
from tests.traffic.wire import Encoder, request_bytes

_QUIET = Facts()


def _call(api_key: int, version: int, number: int, request: Encoder, response: Encoder) -> Exchange:
    return exchange((api_key, version, number, "admin"), request.data, response.data, _QUIET)


def alter_configs(version: int, number: int, values: Mapping[str, str]) -> Exchange:
    """AlterConfigs 1-2 of broker 1."""
    flexible = version >= 2
    request = Encoder(flexible).count(1).i8(4).string("1")
    request.array(values.items(), lambda row: request.string(row[0]).string(row[1]).tags())
    request.tags().i8(0).tags()
    response = Encoder(flexible).i32(0).count(1).i16(0).string(None).i8(4).string("1").tags().tags()
    return _call(33, version, number, request, response)


def incremental_alter_configs(version: int, number: int, values: Mapping[str, str]) -> Exchange:
    """IncrementalAlterConfigs 0-1 of broker 1."""
    flexible = version >= 1
    request = Encoder(flexible).count(1).i8(4).string("1")
    request.array(values.items(), lambda row: request.string(row[0]).i8(0).string(row[1]).tags())
    request.tags().i8(0).tags()
    response = Encoder(flexible).i32(0).count(1).i16(0).string(None).i8(4).string("1").tags().tags()
    return _call(44, version, number, request, response)


def describe_configs(number: int, values: Mapping[str, str]) -> Exchange:
    """DescribeConfigs 4 of broker 1; all values are sensitive, and told nevertheless."""
    request = Encoder(True).count(1).i8(4).string("1").count(-1).tags().i8(0).i8(0).tags()
    response = Encoder(True).i32(0).count(1).i16(0).string(None).i8(4).string("1")

    def told(row: tuple[str, str]) -> None:
        response.string(row[0]).string(row[1]).i8(0).i8(4).i8(1).count(1)
        response.string(row[0]).string(row[1]).i8(4).tags().i8(9).string(None).tags()

    response.array(values.items(), told).tags().tags()
    return _call(32, 4, number, request, response)


def create_delegation_token(number: int, hmac: bytes) -> Exchange:
    """CreateDelegationToken 2."""
    request = Encoder(True).count(0).i64(-1).tags()
    response = Encoder(True).i16(0).string("User").string("alice").i64(1).i64(2).i64(3).string("id-1")
    return _call(38, 2, number, request, response.blob(hmac).i32(0).tags())


def renew_delegation_token(number: int, hmac: bytes) -> Exchange:
    """RenewDelegationToken 2."""
    return _call(
        39, 2, number, Encoder(True).blob(hmac).i64(9).tags(), Encoder(True).i16(0).i64(1).i32(0).tags()
    )


def expire_delegation_token(number: int, hmac: bytes) -> Exchange:
    """ExpireDelegationToken 1."""
    return _call(40, 1, number, Encoder(False).blob(hmac).i64(9), Encoder(False).i16(0).i64(1).i32(0))


def describe_delegation_token(number: int, hmac: bytes) -> Exchange:
    """DescribeDelegationToken 2."""
    response = (
        Encoder(True).i16(0).count(1).string("User").string("alice").i64(1).i64(2).i64(3).string("id-1")
    )
    response.blob(hmac).count(0).tags().i32(0).tags()
    return _call(41, 2, number, Encoder(True).count(-1).tags(), response)


def alter_scram(number: int, salt: bytes, salted_password: bytes) -> Exchange:
    """AlterUserScramCredentials 0."""
    request = Encoder(True).count(0).count(1).string("alice").i8(1).i32(4096)
    request.blob(salt).blob(salted_password).tags().tags()
    response = Encoder(True).i32(0).count(1).string("alice").i16(0).string(None).tags().tags()
    return _call(51, 0, number, request, response)


def envelope(number: int, inside: Exchange) -> Exchange:
    """Envelope 0 around another call, as a broker hands it to the controller."""
    if inside.response is None:
        raise ValueError("what is in an envelope is answered")
    request = (
        Encoder(True).blob(inside.request[4:]).blob(b"\0\0\x05User\x06alice\0\0").blob(b"\x0a\0\0\1").tags()
    )
    response = Encoder(True).blob(inside.response[4:]).i16(0).tags()
    return _call(58, 0, number, request, response)


def broken(call: Exchange, cut: int) -> Exchange:
    """The same call with fewer bytes in both messages: the sizes are right, fields are missing."""

    def shorter(frame: bytes | None) -> bytes | None:
        return None if frame is None else (len(frame) - 4 - cut).to_bytes(4, "big") + frame[4:-cut]

    request = shorter(call.request)
    if request is None or len(request) < len(
        request_bytes(call.api_key, call.version, 0, call.client_id, b"")
    ):
        raise ValueError("nothing would be left of it")
    return Exchange(
        call.api_key,
        call.version,
        call.correlation_id,
        call.client_id,
        request,
        shorter(call.response),
        call.facts,
    )
