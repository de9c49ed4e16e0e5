"""What members of groups say, with names and generations of a script (KIP-62, KIP-394, KIP-848, KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.traffic.exchange import ErrorAt, Exchange, Facts, exchange
from tests.traffic.wire import Encoder, is_flexible


def _facts(group: str, error: int) -> Facts:
    return Facts(group_id=group, throttle_time_ms=0, errors=(ErrorAt(error),) if error else ())


def join(
    correlation_id: int,
    group: str,
    *,
    asked_as: str = "",
    member: str,
    generation: int,
    error: int = 0,
    instance: str | None = None,
    members: Sequence[str] = (),
    client_id: str,
) -> Exchange:
    """JoinGroup 7. ``asked_as`` is the id in the request, ``member`` the one the broker answers with."""
    request = Encoder(True).string(group).i32(45_000).i32(300_000).string(asked_as).string(instance)
    request.string("consumer").count(1).string("range").blob(b"\0\1").tags().tags()
    response = Encoder(True).i32(0).i16(error).i32(-1 if error else generation)
    response.string(None if error else "consumer").string(None if error else "range")
    response.string(members[0] if members else "").string(member)
    response.array(members, lambda name: response.string(name).string(None).blob(b"\0\1").tags()).tags()
    return exchange((11, 7, correlation_id, client_id), request.data, response.data, _facts(group, error))


def sync(
    correlation_id: int, group: str, *, member: str, generation: int, error: int = 0, client_id: str
) -> Exchange:
    """SyncGroup 4."""
    request = Encoder(True).string(group).i32(generation).string(member).string(None).count(0).tags()
    response = Encoder(True).i32(0).i16(error).blob(b"" if error else b"\0\0").tags()
    return exchange((14, 4, correlation_id, client_id), request.data, response.data, _facts(group, error))


def beat(
    correlation_id: int, group: str, *, member: str, generation: int, error: int = 0, client_id: str
) -> Exchange:
    """Heartbeat 4."""
    request = Encoder(True).string(group).i32(generation).string(member).string(None).tags()
    response = Encoder(True).i32(0).i16(error).tags()
    return exchange((12, 4, correlation_id, client_id), request.data, response.data, _facts(group, error))


def leave(version: int, correlation_id: int, group: str, *, member: str, client_id: str) -> Exchange:
    """LeaveGroup 2-4: one member up to version 2, a list since."""
    flexible = is_flexible(13, version)
    request = Encoder(flexible).string(group)
    response = Encoder(flexible).i32(0).i16(0)
    if version >= 3:
        request.count(1).string(member).string(None).tags()
        response.count(1).string(member).string(None).i16(0).tags()
    else:
        request.string(member)
    return exchange(
        (13, version, correlation_id, client_id), request.tags().data, response.tags().data, _facts(group, 0)
    )


def consumer_heartbeat(
    correlation_id: int, group: str, *, member: str, epoch: int, answered: int, error: int = 0, client_id: str
) -> Exchange:
    """ConsumerGroupHeartbeat 1 without news: epoch 0 joins, -1 leaves; ``answered`` is the broker's epoch."""
    request = Encoder(True).string(group).string(member).i32(epoch).string(None).string(None).i32(-1)
    request.count(-1).string(None).string(None).count(-1).tags()
    response = (
        Encoder(True).i32(0).i16(error).string(None).string(member).i32(answered).i32(5000).i8(-1).tags()
    )
    return exchange((68, 1, correlation_id, client_id), request.data, response.data, _facts(group, error))


def share_heartbeat(
    correlation_id: int, group: str, *, member: str, epoch: int, answered: int, client_id: str
) -> Exchange:
    """ShareGroupHeartbeat 1 without news."""
    request = Encoder(True).string(group).string(member).i32(epoch).string(None).count(-1).tags()
    response = Encoder(True).i32(0).i16(0).string(None).string(member).i32(answered).i32(5000).i8(-1).tags()
    return exchange((76, 1, correlation_id, client_id), request.data, response.data, _facts(group, 0))
