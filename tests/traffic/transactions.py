"""What transactional producers say to their coordinator (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.traffic.exchange import ErrorAt, Exchange, Facts, exchange
from tests.traffic.wire import Encoder, is_flexible


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a transactional producer is."""

    transactional_id: str
    producer_id: int
    epoch: int
    client_id: str = "till"


def _facts(who: Identity, error: int, *, group_id: str | None = None) -> Facts:
    errors = (ErrorAt(error),) if error else ()
    return Facts(transactional_id=who.transactional_id, group_id=group_id, throttle_time_ms=0, errors=errors)


def init(version: int, correlation_id: int, who: Identity, *, error: int = 0) -> Exchange:
    """InitProducerId 1-4; the broker answers with ``who``'s numbers."""
    flexible = is_flexible(22, version)
    request = Encoder(flexible).string(who.transactional_id).i32(60_000)
    if version >= 3:
        request.i64(-1).i16(-1)
    response = Encoder(flexible).i32(0).i16(error)
    response.i64(-1 if error else who.producer_id).i16(-1 if error else who.epoch).tags()
    return exchange(
        (22, version, correlation_id, who.client_id), request.tags().data, response.data, _facts(who, error)
    )


def add_partitions(
    version: int,
    correlation_id: int,
    who: Identity,
    partitions: Mapping[str, Sequence[int]],
    *,
    error: int = 0,
) -> Exchange:
    """AddPartitionsToTxn 1-3."""
    flexible = is_flexible(24, version)
    request = Encoder(flexible).string(who.transactional_id).i64(who.producer_id).i16(who.epoch)
    response = Encoder(flexible).i32(0)

    def asked(topic: str) -> None:
        request.string(topic).array(partitions[topic], request.i32).tags()

    def answered(topic: str) -> None:
        response.string(topic)
        response.array(partitions[topic], lambda number: response.i32(number).i16(error).tags()).tags()

    request.array(partitions, asked).tags()
    response.array(partitions, answered).tags()
    return exchange(
        (24, version, correlation_id, who.client_id), request.data, response.data, _facts(who, error)
    )


def add_offsets(version: int, correlation_id: int, who: Identity, group: str) -> Exchange:
    """AddOffsetsToTxn 1-3."""
    flexible = is_flexible(25, version)
    request = Encoder(flexible).string(who.transactional_id).i64(who.producer_id).i16(who.epoch).string(group)
    response = Encoder(flexible).i32(0).i16(0).tags()
    return exchange(
        (25, version, correlation_id, who.client_id),
        request.tags().data,
        response.data,
        _facts(who, 0, group_id=group),
    )


def commit_offsets(correlation_id: int, who: Identity, group: str, topic: str, offset: int) -> Exchange:
    """TxnOffsetCommit 3 of one partition."""
    request = Encoder(True).string(who.transactional_id).string(group).i64(who.producer_id).i16(who.epoch)
    request.i32(1).string("member-1").string(None)
    request.count(1).string(topic).count(1).i32(0).i64(offset).i32(-1).string(None).tags().tags().tags()
    response = Encoder(True).i32(0).count(1).string(topic).count(1).i32(0).i16(0).tags().tags().tags()
    return exchange(
        (28, 3, correlation_id, who.client_id), request.data, response.data, _facts(who, 0, group_id=group)
    )


def end(version: int, correlation_id: int, who: Identity, *, committed: bool, error: int = 0) -> Exchange:
    """EndTxn 1-3."""
    flexible = is_flexible(26, version)
    request = Encoder(flexible).string(who.transactional_id).i64(who.producer_id).i16(who.epoch)
    request.i8(committed).tags()
    response = Encoder(flexible).i32(0).i16(error).tags()
    return exchange(
        (26, version, correlation_id, who.client_id), request.data, response.data, _facts(who, error)
    )
