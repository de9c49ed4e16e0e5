"""Metadata and assignments of group members in JoinGroup and SyncGroup, by the group's protocol type.

Consumers (ConsumerProtocol of the clients) and Connect workers (ConnectProtocol) write an int16 version and
then a body; schema registries write JSON. If the type is unknown, the schema that fits without bytes left
over
is used.
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
"""Facts on members and the leader of a schema registry; none is a secret."""
_STREAMS: Final = "SubscriptionInfoData"


def read_member(finder: SchemaReader, data: bytes, field: str, protocol_type: str | None) -> Inner | None:
    """Decodes the bytes of a member; ``field``: metadata or assignment."""
    which = 0 if field in _METADATA else 1
    if protocol_type in _SCHEMAS:
        return _read_versioned(finder, data, _SCHEMAS[protocol_type][which])
    if protocol_type == "sr":
        return _json(data) or Inner(JSON, note="not JSON, as expected of a schema registry")
    if protocol_type:
        return Inner("bytes", note=f"bytes of protocol type {protocol_type!r}")
    for names in _SCHEMAS.values():
        guess = _read_versioned(finder, data, names[which])
        if guess.is_read:
            guess.note = "guessed, as the protocol type is unknown"
            return guess
    return _json(data)


def read_user_data(finder: SchemaReader, data: bytes) -> Inner | None:
    """User data that an assignor adds to a subscription. Only Kafka Streams' has a schema; every byte must
    match."""
    version = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < 4 or version not in finder.catalog.schemas[_STREAMS].versions:
        return None
    inner = finder.schema(_STREAMS, version, data)
    return inner if inner.is_read else None


def _read_versioned(finder: SchemaReader, data: bytes, name: str) -> Inner:
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
