"""Answers that name topic ids beside Metadata (KIP-516, 848, 966), and a call that only brokers make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.traffic.exchange import ErrorAt, Exchange, Facts, exchange
from tests.traffic.messages import CLIENT, ZERO_UUID, topic_uuid
from tests.traffic.wire import Encoder


def create_topics(
    correlation_id: int, topics: Sequence[str], *, errors: Mapping[str, int] | None = None
) -> Exchange:
    """CreateTopics 7 with one partition each; a topic that is refused has no id."""
    codes = dict(errors or {})
    request = Encoder(True)
    request.array(topics, lambda name: request.string(name).i32(1).i16(1).count(0).count(0).tags())
    request.i32(30_000).i8(0).tags()
    response = Encoder(True).i32(0)

    def answered(name: str) -> None:
        code = codes.get(name, 0)
        response.string(name).uuid(ZERO_UUID if code else topic_uuid(name)).i16(code).string(None)
        response.i32(-1 if code else 1).i16(-1 if code else 1)
        response.count(1).string("retention.ms").string("1000").i8(0).i8(1).i8(0).tags().tags()

    response.array(topics, answered).tags()
    facts = Facts(
        topics=tuple(topics),
        throttle_time_ms=0,
        errors=tuple(ErrorAt(codes[name], name) for name in topics if codes.get(name)),
    )
    return exchange((19, 7, correlation_id, CLIENT), request.data, response.data, facts)


def describe_topic_partitions(correlation_id: int, topics: Sequence[str]) -> Exchange:
    """DescribeTopicPartitions 0 of all partitions of topics that have one, answered without a cursor."""
    request = Encoder(True)
    request.array(topics, lambda name: request.string(name).tags()).i32(2000).i8(-1).tags()
    response = Encoder(True).i32(0)

    def answered(name: str) -> None:
        response.i16(0).string(name).uuid(topic_uuid(name)).i8(0).count(1)
        response.i16(0).i32(0).i32(1).i32(5).count(1).i32(1).count(1).i32(1)
        response.count(-1).count(-1).count(0).tags()
        response.i32(-(2**31)).tags()

    response.array(topics, answered).i8(-1).tags()
    facts = Facts(topics=tuple(topics), throttle_time_ms=0)
    return exchange((75, 0, correlation_id, CLIENT), request.data, response.data, facts)


def describe_consumer_group(correlation_id: int, group: str, topics: Sequence[str]) -> Exchange:
    """ConsumerGroupDescribe 0: one member that has partition 0 of each topic, and is to keep it."""
    request = Encoder(True).count(1).string(group).i8(0).tags()
    response = Encoder(True).i32(0).count(1)
    response.i16(0).string(None).string(group).string("Stable").i32(4).i32(4).string("uniform").count(1)
    response.string("member-1").string(None).string(None).i32(4).string(CLIENT).string("/10.0.0.1")
    response.array(topics, response.string).string(None)

    def has(name: str) -> None:
        response.uuid(topic_uuid(name)).string(name).count(1).i32(0).tags()

    response.array(topics, has).tags()
    response.array(topics, has).tags()
    response.tags().i32(-(2**31)).tags().tags()
    facts = Facts(group_id=group, throttle_time_ms=0)
    return exchange((69, 0, correlation_id, CLIENT), request.data, response.data, facts)


def allocate_producer_ids(correlation_id: int, broker: int) -> Exchange:
    """AllocateProducerIds 0, which brokers ask their controller."""
    request = Encoder(True).i32(broker).i64(9).tags()
    response = Encoder(True).i32(0).i16(0).i64(4000).i32(1000).tags()
    facts = Facts(throttle_time_ms=0)
    return exchange((67, 0, correlation_id, f"broker-{broker}"), request.data, response.data, facts)
