"""What members of a group tell each other in JoinGroup and SyncGroup, by the group's protocol type.

Consumers (ConsumerProtocol of the clients) and Connect workers (ConnectProtocol) write an int16 version and
then a body; schema registries write JSON. Where the type is not known, it is taken to be the one whose schema
fits without a byte left over.
"""

import json
from typing import Final

from kwsniff.view.model import Inner, SchemaReader

_METADATA: Final = ("metadata", "member_metadata", "subscription")
_SCHEMAS: Final = {
    "consumer": ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "connect": ("ConnectMetadata", "ConnectAssignment"),
}
JSON: Final = "JSON"
PUBLIC_NAMES: Final = frozenset(
    [
        "version",
        "host",
        "port",
        "scheme",
        "master_eligibility",
        "leader_eligibility",
        "error",
        "master",
        "leader",
    ]
)
"""What members of a schema registry say of themselves and of who leads them; none of it is a secret."""
_STREAMS: Final = "SubscriptionInfoData"


def read_member(finder: SchemaReader, data: bytes, field: str, protocol_type: str | None) -> Inner | None:
    """The bytes of a member; ``field`` tells metadata from assignment."""
    which = 0 if field in _METADATA else 1
    if protocol_type in _SCHEMAS:
        return _versioned(finder, data, _SCHEMAS[protocol_type][which])
    if protocol_type == "sr":
        return _json(data) or Inner(JSON, note="is not JSON, as of a schema registry it should be")
    if protocol_type:
        return Inner("bytes", note=f"bytes of protocol type {protocol_type!r}")
    for names in _SCHEMAS.values():
        guess = _versioned(finder, data, names[which])
        if guess.is_read:
            guess.note = "by its looks: the protocol type is not known"
            return guess
    return _json(data)


def read_user_data(finder: SchemaReader, data: bytes) -> Inner | None:
    """What an assignor adds to a subscription. Only Kafka Streams' has a schema; every byte must fit."""
    version = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < 4 or version not in finder.catalog.schemas[_STREAMS].versions:
        return None
    inner = finder.schema(_STREAMS, version, data)
    return inner if inner.is_read else None


def _versioned(finder: SchemaReader, data: bytes, name: str) -> Inner:
    if len(data) < 2:
        return Inner(name, note="too short for a version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if name.startswith("Connect") and version > finder.catalog.schemas[name].versions[-1]:
        return Inner(name, version, note=f"version {version} of {name} is not known")
    return finder.schema(name, version, data[2:])


def _json(data: bytes) -> Inner | None:
    if not data.startswith(b"{"):
        return None
    try:
        return Inner(JSON, facts=json.loads(data))
    except (ValueError, RecursionError):
        return None
