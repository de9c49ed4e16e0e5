"""What a broker puts into an Envelope (KIP-590): a client's request, its answer, who the client is."""

from typing import TYPE_CHECKING

from kwsniff.limits import Limits
from kwsniff.view.inner import Inner, Surroundings, find_inner

if TYPE_CHECKING:
    from kwsniff.view.inner import Finder


def read_message(data: bytes, field: str, around: Surroundings, depth: int, limits: Limits) -> Inner:
    """A request or response, header and body. A response needs ``around.asked``."""
    from kwsniff.view.decode import decode

    if field == "request_data":
        message = decode(data, limits=limits)
    elif around.asked is None:
        return Inner("response", note="a response; the request it answers is not known")
    else:
        key, version = around.asked
        message = decode(data, direction="response", api_key=key, api_version=version, limits=limits)
    message.inner = find_inner(message, Surroundings(topics=around.topics), depth + 1)
    error = message.error
    shown = {"code": error.code, "path": error.path, "offset": error.offset} if error else None
    return Inner(message.direction, message.api_version, message=message, error=shown)


def read_principal(finder: "Finder", data: bytes) -> Inner:
    """An int16 version and the default principal; other principal builders may write anything."""
    if len(data) < 2:
        return Inner("DefaultPrincipalData", note="too short for a version")
    inner = finder.schema("DefaultPrincipalData", int.from_bytes(data[:2], "big", signed=True), data[2:])
    return inner if inner.is_read else Inner("bytes", note="not the default principal")
