"""One call as both sides meant it: the bytes of the request, the bytes of the answer, and what they say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.traffic.wire import APIS, request_bytes, response_bytes, sized


@dataclass(frozen=True, slots=True)
class ErrorAt:
    """One non-zero error code of a response, at whatever depth."""

    code: int
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table row of a call must say; None means the API has no such field."""

    topics: tuple[str, ...] | None = None
    group_id: str | None = None
    transactional_id: str | None = None
    acks: int | None = None
    partition_count: int | None = None
    throttle_time_ms: int | None = None
    record_bytes: int | None = None
    record_count: int | None = None
    software: tuple[str, str] | None = None
    errors: tuple[ErrorAt, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request frame, its response frame (None: none is sent) and the facts; frames include the size."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: bytes
    response: bytes | None
    facts: Facts = field(default_factory=Facts)

    @property
    def api(self) -> str:
        return APIS[self.api_key][0]

    @property
    def expects_response(self) -> bool:
        return not (self.api_key == 0 and self.facts.acks == 0)

    def unanswered(self) -> Exchange:
        """The same call to a broker that never answers."""
        return replace(self, response=None)


def exchange(
    head: tuple[int, int, int, str | None],
    request_body: bytes | bytearray,
    response_body: bytes | bytearray | None,
    facts: Facts,
) -> Exchange:
    """Puts headers and sizes around two bodies; ``head``: key, version, correlation id, client id."""
    api_key, version, correlation_id, client_id = head
    response = None
    if response_body is not None:
        response = sized(response_bytes(api_key, version, correlation_id, bytes(response_body)))
    request = sized(request_bytes(api_key, version, correlation_id, client_id, bytes(request_body)))
    return Exchange(api_key, version, correlation_id, client_id, request, response, facts)
