"""TLS secrets inside captures: the pipeline opens no TLS, and says so where `kwsniff analyze` has notes."""

from collections.abc import Sequence

from kwsniff.sources.keylog import has_secrets_block
from kwsniff.spark.inputs import Capture
from kwsniff.spark.scan import Walked
from kwsniff.tables.captures import CaptureRow


def secretive(captures: Sequence[Capture], walks: Sequence[Sequence[Walked]]) -> list[str]:
    """The captures with TLS secrets in them."""
    return [
        capture.name
        for capture, walked in zip(captures, walks, strict=True)
        if has_secrets_block(capture.head) or any(walk.scan.secrets for walk in walked)
    ]


def note_secrets(rows: Sequence[CaptureRow], secretive: Sequence[str]) -> None:
    """Adds the notes to the last of the rows, which are all captures, with where their bytes ended up: they
    are worth something where there was more than Kafka in the open."""
    if rows and any(row["not_kafka_bytes"] for row in rows):
        rows[-1]["notes"] += [
            f"{name}: holds TLS secrets, which the pipeline does not use; kwsniff analyze opens TLS with them"
            for name in secretive
        ]
