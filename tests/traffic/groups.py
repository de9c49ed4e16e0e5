"""Group, offset, transaction and SASL calls, encoded from the field lists of the protocol guide."""

from __future__ import annotations

from collections.abc import Mapping

from tests.traffic.exchange import ErrorAt, Exchange, Facts, exchange
from tests.traffic.messages import CLIENT, Errors, listed
from tests.traffic.wire import Encoder, is_flexible

Offsets = Mapping[str, Mapping[int, int]]


def _top(error: int) -> tuple[ErrorAt, ...]:
    return (ErrorAt(error),) if error else ()


def find_coordinator(
    version: int, correlation_id: int, group: str, *, error: int = 0, client_id: str | None = CLIENT
) -> Exchange:
    """FindCoordinator 1-4 of a group."""
    flexible = is_flexible(10, version)
    request = Encoder(flexible)
    if version <= 3:
        request.string(group).i8(0).tags()
    else:
        request.i8(0).count(1).string(group).tags()
    response = Encoder(flexible).i32(0)
    if version <= 3:
        response.i16(error).string(None).i32(1).string("broker-1").i32(9092).tags()
    else:
        response.count(1).string(group).i32(1).string("broker-1").i32(9092).i16(error).string(
            None
        ).tags().tags()
    facts = Facts(group_id=group, throttle_time_ms=0, errors=_top(error))
    return exchange((10, version, correlation_id, client_id), request.data, response.data, facts)


def join_group(
    version: int, correlation_id: int, group: str, *, error: int = 0, client_id: str | None = CLIENT
) -> Exchange:
    """JoinGroup 5-9 of a single member that becomes the leader."""
    flexible = is_flexible(11, version)
    subscription = Encoder(False).i16(0).count(1).string("orders").blob(None)
    request = (
        Encoder(flexible).string(group).i32(45_000).i32(300_000).string("").string(None).string("consumer")
    )
    request.count(1).string("range").blob(bytes(subscription.data)).tags()
    if version >= 8:
        request.string(None)
    request.tags()
    response = Encoder(flexible).i32(0).i16(error).i32(-1 if error else 1)
    if version >= 7:
        response.string(None if error else "consumer")
    response.string("" if error else "range").string("" if error else "member-1")
    if version >= 9:
        response.i8(0)
    response.string("member-1").count(0 if error else 1)
    if not error:
        response.string("member-1").string(None).blob(bytes(subscription.data)).tags()
    response.tags()
    facts = Facts(group_id=group, throttle_time_ms=0, errors=_top(error))
    return exchange((11, version, correlation_id, client_id), request.data, response.data, facts)


def sync_group(
    version: int, correlation_id: int, group: str, *, error: int = 0, client_id: str | None = CLIENT
) -> Exchange:
    """SyncGroup 3-5."""
    flexible = is_flexible(14, version)
    assignment = bytes(Encoder(False).i16(0).count(1).string("orders").count(1).i32(0).blob(None).data)
    request = Encoder(flexible).string(group).i32(1).string("member-1").string(None)
    if version >= 5:
        request.string("consumer").string("range")
    request.count(1).string("member-1").blob(assignment).tags().tags()
    response = Encoder(flexible).i32(0).i16(error)
    if version >= 5:
        response.string("consumer").string("range")
    response.blob(b"" if error else assignment).tags()
    facts = Facts(group_id=group, throttle_time_ms=0, errors=_top(error))
    return exchange((14, version, correlation_id, client_id), request.data, response.data, facts)


def heartbeat(
    version: int, correlation_id: int, group: str, *, error: int = 0, client_id: str | None = CLIENT
) -> Exchange:
    """Heartbeat 3-4."""
    flexible = is_flexible(12, version)
    request = Encoder(flexible).string(group).i32(1).string("member-1").string(None).tags()
    response = Encoder(flexible).i32(0).i16(error).tags()
    facts = Facts(group_id=group, throttle_time_ms=0, errors=_top(error))
    return exchange((12, version, correlation_id, client_id), request.data, response.data, facts)


def offset_commit(
    version: int,
    correlation_id: int,
    group: str,
    offsets: Offsets,
    *,
    errors: Errors | None = None,
    client_id: str | None = CLIENT,
) -> Exchange:
    """OffsetCommit 7-9."""
    codes = dict(errors or {})
    flexible = is_flexible(8, version)
    request = Encoder(flexible).string(group).i32(1).string("member-1").string(None)
    response = Encoder(flexible).i32(0)

    def sent(topic: str) -> None:
        request.string(topic)
        rows = offsets[topic].items()
        request.array(rows, lambda row: request.i32(row[0]).i64(row[1]).i32(-1).string("").tags()).tags()

    def answered(topic: str) -> None:
        response.string(topic)
        response.array(
            offsets[topic], lambda index: response.i32(index).i16(codes.get((topic, index), 0)).tags()
        )
        response.tags()

    request.array(offsets, sent).tags()
    response.array(offsets, answered).tags()
    facts = Facts(
        topics=tuple(offsets),
        group_id=group,
        partition_count=sum(map(len, offsets.values())),
        throttle_time_ms=0,
        errors=listed(codes),
    )
    return exchange((8, version, correlation_id, client_id), request.data, response.data, facts)


def offset_fetch(
    version: int,
    correlation_id: int,
    group: str,
    offsets: Offsets,
    *,
    error: int = 0,
    client_id: str | None = CLIENT,
) -> Exchange:
    """OffsetFetch 5-8; ``error`` is the group's code."""
    flexible = is_flexible(9, version)
    request = Encoder(flexible)
    response = Encoder(flexible).i32(0)

    def asked(topic: str) -> None:
        request.string(topic).array(offsets[topic], request.i32).tags()

    def answered(topic: str) -> None:
        response.string(topic)
        rows = offsets[topic].items()
        response.array(
            rows, lambda row: response.i32(row[0]).i64(row[1]).i32(-1).string("").i16(0).tags()
        ).tags()

    if version >= 8:
        request.count(1).string(group).array(offsets, asked).tags()
        response.count(1).string(group).array(offsets, answered).i16(error).tags()
    else:
        request.string(group).array(offsets, asked)
        response.array(offsets, answered).i16(error)
    if version >= 7:
        request.i8(0)
    request.tags()
    response.tags()
    facts = Facts(
        topics=tuple(offsets),
        group_id=group,
        partition_count=sum(map(len, offsets.values())),
        throttle_time_ms=0,
        errors=_top(error),
    )
    return exchange((9, version, correlation_id, client_id), request.data, response.data, facts)


def init_producer_id(
    version: int,
    correlation_id: int,
    transactional_id: str | None,
    *,
    error: int = 0,
    client_id: str | None = CLIENT,
) -> Exchange:
    """InitProducerId 1-4."""
    flexible = is_flexible(22, version)
    request = Encoder(flexible).string(transactional_id).i32(60_000)
    if version >= 3:
        request.i64(-1).i16(-1)
    request.tags()
    response = Encoder(flexible).i32(0).i16(error).i64(-1 if error else 4000).i16(-1 if error else 0).tags()
    facts = Facts(transactional_id=transactional_id, throttle_time_ms=0, errors=_top(error))
    return exchange((22, version, correlation_id, client_id), request.data, response.data, facts)


def list_offsets(
    version: int,
    correlation_id: int,
    partitions: Mapping[str, int],
    *,
    errors: Errors | None = None,
    isolation: int = 0,
    replica: int = -1,
    client_id: str | None = CLIENT,
) -> Exchange:
    """ListOffsets 4-7: the end offset of one partition of each topic."""
    codes = dict(errors or {})
    flexible = is_flexible(2, version)
    request = Encoder(flexible).i32(replica).i8(isolation)
    response = Encoder(flexible).i32(0)

    def asked(row: tuple[str, int]) -> None:
        request.string(row[0]).count(1).i32(row[1]).i32(-1).i64(-1).tags().tags()

    def answered(row: tuple[str, int]) -> None:
        code = codes.get(row, 0)
        response.string(row[0]).count(1).i32(row[1]).i16(code).i64(-1).i64(-1 if code else 77).i32(
            -1
        ).tags().tags()

    request.array(partitions.items(), asked).tags()
    response.array(partitions.items(), answered).tags()
    facts = Facts(
        topics=tuple(partitions), partition_count=len(partitions), throttle_time_ms=0, errors=listed(codes)
    )
    return exchange((2, version, correlation_id, client_id), request.data, response.data, facts)


def sasl_handshake(
    version: int, correlation_id: int, mechanism: str, *, error: int = 0, client_id: str | None = CLIENT
) -> Exchange:
    """SaslHandshake 0-1; after version 0 raw tokens follow without any header."""
    request = Encoder(False).string(mechanism)
    response = Encoder(False).i16(error).count(2).string("PLAIN").string("SCRAM-SHA-256")
    facts = Facts(errors=_top(error))
    return exchange((17, version, correlation_id, client_id), request.data, response.data, facts)


def sasl_authenticate(
    version: int,
    correlation_id: int,
    token: bytes,
    answer: bytes,
    *,
    error: int = 0,
    client_id: str | None = CLIENT,
) -> Exchange:
    """SaslAuthenticate 0-2."""
    flexible = is_flexible(36, version)
    request = Encoder(flexible).blob(token).tags()
    response = Encoder(flexible).i16(error).string("no" if error else None).blob(answer)
    if version >= 1:
        response.i64(0)
    response.tags()
    facts = Facts(errors=_top(error))
    return exchange((36, version, correlation_id, client_id), request.data, response.data, facts)
