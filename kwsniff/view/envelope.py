"""Who an Envelope (KIP-590) says the client is; the message in it is read as any other (inner.py)."""

from kwsniff.view.model import Inner, SchemaReader


def read_principal(finder: SchemaReader, data: bytes) -> Inner:
    """An int16 version and the default principal; other principal builders may write anything."""
    if len(data) < 2:
        return Inner("DefaultPrincipalData", note="too short for a version")
    inner = finder.schema("DefaultPrincipalData", int.from_bytes(data[:2], "big", signed=True), data[2:])
    return inner if inner.is_read else Inner("bytes", note="not the default principal")
