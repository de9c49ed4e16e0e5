"""The client principal in an Envelope (KIP-590); inner.py decodes the message inside."""

from kwsniff.view.model import Inner, SchemaReader


def read_principal(finder: SchemaReader, data: bytes) -> Inner:
    """An int16 version and the default principal; custom principal builders may write other bytes."""
    if len(data) < 2:
        return Inner("DefaultPrincipalData", note="too short for a version")
    inner = finder.schema("DefaultPrincipalData", int.from_bytes(data[:2], "big", signed=True), data[2:])
    return inner if inner.is_read else Inner("bytes", note="not the default principal")
