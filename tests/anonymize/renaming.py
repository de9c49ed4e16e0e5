"""Two captures compared: the second one must be the first one with other names, as the map says."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kwsniff.codecs.compressed_batch import CodecError, decompress
from kwsniff.core.wire.records import batches
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.view.call import Conversation
from kwsniff.view.embedded import leaves
from kwsniff.view.reader import CallReader
from tests.pipeline.compare import Row

Rename = Callable[[Any], Any]

# Numbers that follow from the bytes of names: hashes of messages, batches and addresses.
DERIVED = ("messages_hash", "crc", "community_id")
# Columns with words of kwsniff's own, which a map may have too, as somebody's name.
OWN_WORDS = (
    "wait",
    "codec",
    "compression",
    "idempotent",
    "defaults",
    "name",
    "api_name",
    "error_name",
    "caller",
    "queued_behind_wait",
    "status",
    "reason",
    "finding",
    "severity",
    "confidence",
    "blames",
    "subject_kind",
    "unit",
    "explained_by",
)
_LETTER = re.compile(r"[^\W\d_]|[.:]")


def read_map(path: Path) -> dict[str, str]:
    """--map as a dictionary."""
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == "name\treplacement"
    return dict(line.split("\t") for line in lines[1:])


def renaming(names: Mapping[str, str]) -> Rename:
    """Renames whole values, and names inside texts."""
    keys = sorted((each for each in names if len(each) > 1 and _LETTER.search(each)), key=len, reverse=True)
    inside = re.compile(r"(?<![^\W_])(?:" + "|".join(map(re.escape, keys)) + r")(?![^\W_])")

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value) or (inside.sub(lambda found: names[found[0]], value) if keys else value)
        if isinstance(value, list):
            return [rename(each) for each in value]
        return value

    return rename


def counted(rows: Iterable[Row], rename: Rename | None = None) -> Counter[str]:
    """Rows as texts, in any order, without what is derived from names."""
    return Counter(
        json.dumps(
            {name: _cell(name, value, rename) for name, value in row.items() if name not in DERIVED},
            default=str,
        )
        for row in rows
    )


def _cell(column: str, value: Any, rename: Rename | None) -> Any:
    renamed = rename(value) if rename and column not in OWN_WORDS else value
    is_set = isinstance(renamed, list) and all(isinstance(each, str) for each in renamed)
    return sorted(renamed) if is_set else renamed


def names_in(capture: Path) -> set[str]:
    """Names, keys, values and hosts of a capture's messages, of four characters or more."""
    public = load_catalog().names
    found: set[str] = set()
    conversation = Conversation()
    for call in CallReader([str(capture)], tls_keylog=False).calls():
        for part in conversation.decode(call).parts:
            message = part.message
            if message is None:
                continue
            for field, value in leaves(message.tree, message.inner or {}):
                if public.kind(field.name, field.meaning) == "name" and field.meaning is not Meaning.RECORDS:
                    found.update(
                        each
                        for each in (value if isinstance(value, list) else [value])
                        if isinstance(each, str)
                    )
    return {each for each in found if len(each) >= 4}


def encodings(name: str) -> list[bytes]:
    """A name as UTF-8, as UTF-16, and inside base64, at each of its three places."""
    data = name.encode()
    inside = [b64encode(bytes(shift) + data)[2 * bool(shift) + shift : -4] for shift in range(3)]
    return [
        data,
        name.encode("utf-16-le"),
        name.encode("utf-16-be"),
        *(each for each in inside if len(each) > 5),
    ]


def opened(data: bytes) -> bytes:
    """The bytes, and what is in compressed record batches and messages that begin anywhere in them."""
    parts = [data]
    for at in (found.start() - 16 for found in re.finditer(rb"\x02|[\0\1][\1-\4]", data)):
        if at < 0 or data[at : at + 4] != bytes(4):
            continue
        found, _, _ = batches(data[at : at + 200_000])
        for each in found[:1]:
            packed = data[at + each.payload : at + each.offset + each.size]
            if each.magic < 2:  # attributes, time, a key that is null, and the size of the value
                packed = packed[17 if each.magic else 9 :]
            if each.attributes & 7 and each.is_valid:
                try:
                    parts.append(decompress(each.attributes & 7, packed, limit=1 << 24))
                except CodecError:
                    continue
    return b"\n".join(parts)
