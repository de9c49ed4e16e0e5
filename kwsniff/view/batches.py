"""A record set as lines: batches with their attributes, records with keys and values or their sizes."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

from kwsniff.view.formats import in_zone, plural, shorten
from kwsniff.view.model import Inner
from kwsniff.view.records import RecordSet
from kwsniff.zones import Zone

#: Maximum records of one set in text; JSON has all.
_MOST_LINES: Final = 1000

Line = tuple[str, Inner | None]


def record_set_lines(found: Inner, zone: Zone) -> Iterator[Line]:
    """Lines of a record set, each with the content to show below it."""
    records = found.records
    if records is None:
        return
    shown = 0
    for number, batch in enumerate(records.batches):
        yield _batch(batch, zone), None
        for index, record in enumerate(batch["records"]):
            if shown == _MOST_LINES:
                rest = sum(len(one["records"]) for one in records.batches) - shown
                yield f"  ... {plural(rest, 'more record')}", None
                break
            shown += 1
            yield f"  {_record(record, zone)}", None
            for name in ("key", "value"):
                one = found.in_records.get((number, index, name))
                if one is not None:
                    yield f"    {name}:", one
        if shown == _MOST_LINES:
            break
    for control in records.control if shown < _MOST_LINES else ():
        if control["value"] is not None:
            yield f"{control['control_type']}: {shorten(str(control['value']))}", None
    error = records.error
    if error is not None:
        yield f"! {error['code']} at byte {error['offset']} of it in {error['path'] or '/'}", None
    if records.trailing_bytes:
        kind = "not read" if _ends_corrupt(records) else "of a batch that is cut off"
        yield f"{plural(records.trailing_bytes, 'byte')} {kind}", None


def record_set_note(records: RecordSet) -> str:
    """The size of a record set, in a few words."""
    counts = [batch.get("count", len(batch["records"])) for batch in records.batches]
    text = plural(len(counts), "batch")
    if min(counts, default=-1) >= 0:
        text += f", {plural(sum(counts), 'record')}"
    return f"{text}, then {plural(records.trailing_bytes, 'byte')}" if records.trailing_bytes else text


def _ends_corrupt(records: RecordSet) -> bool:
    return records.error is not None and records.error["path"] == f"/batches/{len(records.batches)}"


def _batch(batch: dict[str, Any], zone: Zone) -> str:
    count = len(batch["records"])
    if batch["magic"] < 2:
        title = (
            f"message set v{batch['magic']}"
            if batch["compression"] != "none"
            else f"message v{batch['magic']}"
        )
        declared = ""
    else:
        title = "batch v2"
        declared = f" of {batch['count']}" if batch["count"] != count else ""
    parts = [
        f"{title}: offsets {batch['base_offset']} to {batch['last_offset']}",
        f"{plural(count, 'record')}{declared}" if not declared else f"{count}{declared} records",
        f"{batch['size_in_bytes']} bytes",
        batch["compression"] if batch["compression"] != "none" else "not compressed",
    ]
    if batch["timestamp_type"] != "NoTimestampType":
        parts.append(f"{batch['timestamp_type']} up to {in_zone(batch['max_timestamp'], zone)}")
    if batch["magic"] == 2:
        parts += _producer(batch, zone)
    parts.append("crc ok" if batch["is_valid"] else "! crc wrong")
    return ", ".join(parts)


def _producer(batch: dict[str, Any], zone: Zone) -> Iterator[str]:
    yield f"leader epoch {batch['partition_leader_epoch']}"
    if batch["producer_id"] >= 0:
        epoch, sequence = batch["producer_epoch"], batch["base_sequence"]
        yield f"producer {batch['producer_id']} epoch {epoch} sequence {sequence}"
    if batch["is_transactional"]:
        yield "transactional"
    if batch["is_control_batch"]:
        yield "control"
    if batch["has_delete_horizon"]:
        yield f"delete horizon {in_zone(batch['delete_horizon_ms'], zone)}"


def _record(record: dict[str, Any], zone: Zone) -> str:
    if "control_type" in record:
        return f"{record['offset']}: {record['control_type']}, {in_zone(record['timestamp'], zone)}"
    parts = [f"key {_bytes(record['key'])}", f"value {_bytes(record['value'])}"]
    if record["timestamp"] >= 0:
        parts.insert(0, in_zone(record["timestamp"], zone))
    if record.get("headers"):
        headers = [f"{header['key']!r}: {_bytes(header['value'])}" for header in record["headers"]]
        parts.append(f"headers {{{', '.join(headers)}}}")
    return f"{record['offset']}: {', '.join(parts)}"


def _bytes(value: str | None) -> str:
    """Base64 content as text if it is text, else as hex; hidden content is already a placeholder."""
    if value is None:
        return "null"
    if value.startswith("<"):
        return value.removeprefix("<hidden, ").removesuffix(">") if value.startswith("<hidden") else value
    data = b64decode(value)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return shorten(data.hex())
    return shorten(repr(text) if text.isprintable() else ascii(text))
