"""Produce, Fetch, Metadata and ApiVersions calls, encoded from the field lists of the protocol guide.

Every function takes the version and the correlation id first and gives an `Exchange`. `errors` maps
(topic, partition) to the code the broker answers there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.traffic.exchange import ErrorAt, Exchange, Facts, exchange
from tests.traffic.records import count_records
from tests.traffic.wire import Encoder, is_flexible, request_bytes, response_bytes, sized

Errors = Mapping[tuple[str, int], int]
Batches = Mapping[str, Mapping[int, bytes | None]]
CLIENT = "shop-1"
ZERO_UUID = bytes(16)


def listed(errors: Errors) -> tuple[ErrorAt, ...]:
    return tuple(ErrorAt(code, topic, partition) for (topic, partition), code in errors.items() if code)


def topic_uuid(topic: str) -> bytes:
    """A stable uuid for a topic name."""
    return (topic.encode() * 16)[:16]


def api_versions(
    version: int,
    correlation_id: int,
    *,
    client_id: str | None = CLIENT,
    software: tuple[str, str] = ("traffic-lib", "1.2.3"),
    supported: Sequence[tuple[int, int, int]] = ((0, 3, 13), (1, 4, 16), (3, 0, 12), (18, 0, 4)),
    error: int = 0,
) -> Exchange:
    flexible = is_flexible(18, version)
    request = Encoder(flexible)
    if flexible:
        request.string(software[0]).string(software[1]).tags()
    response = Encoder(flexible).i16(error)
    response.array(supported, lambda row: response.i16(row[0]).i16(row[1]).i16(row[2]).tags())
    if version >= 1:
        response.i32(0)
    response.tags()
    facts = Facts(
        software=software if flexible else None,
        throttle_time_ms=0 if version >= 1 else None,
        errors=(ErrorAt(error),) if error else (),
    )
    return exchange((18, version, correlation_id, client_id), request.data, response.data, facts)


def api_versions_fallback(
    correlation_id: int, *, version: int = 4, client_id: str | None = CLIENT
) -> Exchange:
    """A version the broker does not know: it answers error 35 with the body of version 0 (KIP-35)."""
    request = Encoder(True).string("traffic-lib").string("9.9").tags()
    body = Encoder(False).i16(35).count(1).i16(18).i16(0).i16(3)
    return Exchange(
        18,
        version,
        correlation_id,
        client_id,
        sized(request_bytes(18, version, correlation_id, client_id, bytes(request.data))),
        sized(response_bytes(18, 0, correlation_id, bytes(body.data))),
        Facts(software=("traffic-lib", "9.9"), errors=(ErrorAt(35),)),
    )


def metadata(
    version: int,
    correlation_id: int,
    topics: Sequence[str],
    *,
    client_id: str | None = CLIENT,
    errors: Mapping[str, int] | None = None,
    partitions: int = 2,
    leader: int = 1,
    epoch: int = 5,
    replicas: Sequence[int] = (1,),
    host: str = "broker-1",
) -> Exchange:
    """Metadata 1-12: every topic with ``partitions`` partitions, or none and an error code.

    Responses name the leader's epoch from version 7 on.
    """
    codes = dict(errors or {})
    flexible = is_flexible(3, version)
    request = Encoder(flexible)

    def asked(topic: str) -> None:
        if version >= 10:
            request.uuid(ZERO_UUID)
        request.string(topic).tags()

    request.array(topics, asked)
    if version >= 4:
        request.i8(1)
    if 8 <= version <= 10:
        request.i8(0)
    if version >= 8:
        request.i8(0)
    request.tags()

    response = Encoder(flexible)
    if version >= 3:
        response.i32(0)
    response.count(1).i32(1).string(host).i32(9092).string(None).tags()
    if version >= 2:
        response.string("cluster-a")
    response.i32(1)

    def partition(index: int) -> None:
        response.i16(0).i32(index).i32(leader)
        if version >= 7:
            response.i32(epoch)
        for _ in ("replicas", "in sync"):
            response.array(replicas, response.i32)
        if version >= 5:
            response.count(0)
        response.tags()

    def answered(topic: str) -> None:
        code = codes.get(topic, 0)
        response.i16(code).string(topic)
        if version >= 10:
            response.uuid(ZERO_UUID if code else topic_uuid(topic))
        response.i8(0).array(range(0 if code else partitions), partition)
        if version >= 8:
            response.i32(-(2**31))
        response.tags()

    response.array(topics, answered)
    if 8 <= version <= 10:
        response.i32(-(2**31))
    response.tags()
    facts = Facts(
        topics=tuple(topics),
        throttle_time_ms=0 if version >= 3 else None,
        errors=tuple(ErrorAt(codes[topic], topic) for topic in topics if codes.get(topic)),
    )
    return exchange((3, version, correlation_id, client_id), request.data, response.data, facts)


def produce(
    version: int,
    correlation_id: int,
    batches: Batches,
    *,
    acks: int = -1,
    client_id: str | None = CLIENT,
    transactional_id: str | None = None,
    errors: Errors | None = None,
    throttle_ms: int = 0,
    offset: int = 42,
) -> Exchange:
    """Produce 3-13 of ``{topic: {partition: record set}}``, appended at `offset`; acks 0: no response."""
    codes = dict(errors or {})
    flexible = is_flexible(0, version)
    request = Encoder(flexible).string(transactional_id).i16(acks).i32(30_000)
    response = Encoder(flexible)

    def name(encoder: Encoder, topic: str) -> None:
        if version >= 13:
            encoder.uuid(topic_uuid(topic))
        else:
            encoder.string(topic)

    def sent(topic: str) -> None:
        name(request, topic)
        rows = batches[topic].items()
        request.array(rows, lambda row: request.i32(row[0]).blob(row[1]).tags()).tags()

    request.array(batches, sent).tags()

    def answered(topic: str) -> None:
        name(response, topic)

        def partition(index: int) -> None:
            code = codes.get((topic, index), 0)
            response.i32(index).i16(code).i64(-1 if code else offset).i64(-1)
            if version >= 5:
                response.i64(0)
            if version >= 8:
                response.count(0).string(None)
            response.tags()

        response.array(batches[topic], partition).tags()

    response.array(batches, answered).i32(throttle_ms).tags()
    facts = Facts(
        topics=tuple(batches),
        record_bytes=sum(len(data or b"") for rows in batches.values() for data in rows.values()),
        record_count=sum(count_records(data) for rows in batches.values() for data in rows.values()),
        transactional_id=transactional_id,
        acks=acks,
        partition_count=sum(map(len, batches.values())),
        throttle_time_ms=throttle_ms if acks else None,
        errors=listed(codes) if acks else (),
    )
    answer = response.data if acks else None
    return exchange((0, version, correlation_id, client_id), request.data, answer, facts)


def fetch(
    version: int,
    correlation_id: int,
    batches: Batches,
    *,
    client_id: str | None = CLIENT,
    errors: Errors | None = None,
    error: int = 0,
    throttle_ms: int = 0,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    opened: int = 0,
    isolation: int = 0,
    replica: int = -1,
    forgotten: Mapping[str, Sequence[int]] | None = None,
    news: Batches | None = None,
    high_watermark: int = 1000,
    offset: int = 100,
    rack: str = "",
    nearer: int = -1,
) -> Exchange:
    """Fetch 4-16 answered with ``{topic: {partition: record set}}``; ``error``: top-level code (7+).

    ``session``: id and epoch of the request (7+), ``opened``: id in the answer, ``forgotten``: partitions
    that the session drops, ``news``: what the answer holds when it is not what the request lists.
    ``nearer``: the broker that the answer names as the better one to read from (KIP-392, 11+).
    ``replica``: the follower that asks; since version 15 in a tagged field with its epoch (KIP-903).
    """
    codes = dict(errors or {})
    answers = batches if news is None else news
    flexible = is_flexible(1, version)
    request = Encoder(flexible)
    response = Encoder(flexible)

    def name(encoder: Encoder, topic: str) -> None:
        if version >= 13:
            encoder.uuid(topic_uuid(topic))
        else:
            encoder.string(topic)

    if version <= 14:
        request.i32(replica)
    request.i32(max_wait_ms).i32(min_bytes).i32(52_428_800).i8(isolation)
    if version >= 7:
        request.i32(session[0]).i32(session[1])

    def asked(topic: str) -> None:
        name(request, topic)

        def partition(index: int) -> None:
            request.i32(index)
            if version >= 9:
                request.i32(5)
            request.i64(offset)
            if version >= 12:
                request.i32(-1)
            if version >= 5:
                request.i64(-1)
            request.i32(1_048_576).tags()

        request.array(batches[topic], partition).tags()

    request.array(batches, asked)

    def dropped(topic: str) -> None:
        name(request, topic)
        request.array((forgotten or {})[topic], request.i32).tags()

    if version >= 7:
        request.array(forgotten or {}, dropped)
    if version >= 11:
        request.string(rack)
    state = Encoder(True).i32(replica).i64(3).tags().data
    request.tags({1: bytes(state)} if version >= 15 and replica >= 0 else None)

    response.i32(throttle_ms)
    if version >= 7:
        response.i16(error).i32(opened)

    def answered(topic: str) -> None:
        name(response, topic)

        def partition(row: tuple[int, bytes | None]) -> None:
            code = codes.get((topic, row[0]), 0)
            response.i32(row[0]).i16(code)
            response.i64(-1 if code else high_watermark).i64(-1 if code else high_watermark - 1)
            if version >= 5:
                response.i64(0)
            response.count(-1)
            if version >= 11:
                response.i32(nearer)
            response.blob(row[1]).tags()

        response.array(answers[topic].items(), partition).tags()

    response.array(answers, answered).tags()
    facts = Facts(
        topics=tuple(batches),
        record_bytes=sum(len(data or b"") for rows in batches.values() for data in rows.values()),
        record_count=sum(count_records(data) for rows in batches.values() for data in rows.values()),
        partition_count=sum(map(len, batches.values())),
        throttle_time_ms=throttle_ms,
        errors=((ErrorAt(error),) if error else ()) + listed(codes),
    )
    return exchange((1, version, correlation_id, client_id), request.data, response.data, facts)
