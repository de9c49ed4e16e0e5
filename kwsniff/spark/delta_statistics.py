"""What Delta's log says of a file's columns: least and greatest values and numbers of nulls, by which readers
skip files. They are those of the file's own row groups. Source: the Delta transaction log protocol.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place

_LONGEST_TEXT: Final = 64
"""Characters of a text: longer ones would fill the log."""


def file_statistics(place: Place, part: Part) -> str:
    """As JSON. Raises OSError."""
    with place.open_parquet(part.path) as file:
        metadata = file.metadata
    said: dict[str, Any] = {"numRecords": part.rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for column in range(metadata.num_columns if groups else 0):
        name = groups[0].column(column).path_in_schema
        found = [group.column(column).statistics for group in groups]
        if "." in name or not all(found):  # of a list, or not said
            continue
        if all(each.has_null_count for each in found):
            said["nullCount"][name] = sum(each.null_count for each in found)
        filled = [each for each in found if not _is_empty(each)]
        if not filled or not all(each.has_min_max for each in filled):
            continue
        ends = _value(min(each.min for each in filled)), _value(max(each.max for each in filled))
        if None not in ends:
            said["minValues"][name], said["maxValues"][name] = ends
    return json.dumps(said)


def _is_empty(found: Any) -> bool:
    """Whether there are only nulls."""
    return bool(found.has_null_count and found.num_values == 0)


def _value(value: Any) -> Any:
    """In JSON; None for what the protocol has no exact word for."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    return value if isinstance(value, int) else None
