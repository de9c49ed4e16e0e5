"""Merges small files of a stream, and deletes days beyond the retention.

Nothing is changed here: what is made waits beside the output, and the record of a batch says what goes where,
so that a kill anywhere leaves the old files or the new ones.
"""

import uuid
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final

import pyarrow as pa

from kwsniff.errors import UsageError
from kwsniff.spark.checkpoint import FOLLOWED
from kwsniff.spark.parts import NO_DATE, Part, empty_path, part_writer
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.write import ROW_GROUP_ROWS

SMALL_BYTES: Final = 64 << 20
"""Files of this size or larger are not merged."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done between batches. None: nothing."""

    compact: int | None = None
    """Number of small files of a table's day to merge into one."""
    keep: int | None = None
    """Number of days to keep, including the last day with rows."""

    def __post_init__(self) -> None:
        if self.compact is not None and self.compact < 2:
            raise UsageError(f"--compact {self.compact}: say how many small files become one, 2 or more")
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: say how many days stay, 1 or more")


NO_RULES: Final = Rules()


@dataclass(slots=True)
class Change:
    """What has to happen to the output."""

    made: list[Part] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    rows_gone: dict[str, int] = field(default_factory=dict)
    """Table -> rows that no file has any more."""


def compact_parts(
    output: Place, staging: Place, rules: Rules, *, going: Container[str], ids: Mapping[str, frozenset[str]]
) -> Change:
    """What the rules ask of the files in the folder `output`, apart from those that are `going` anyway; new
    files are in `staging`. `ids`: of files that show topic ids, which ones."""
    change = Change()
    if rules == NO_RULES:
        return change
    days = _days(output, going)
    first = _first_day(days, rules.keep)
    for (table, day), paths in days.items():
        if first is not None and day != NO_DATE and day < first:
            rows = sum(_rows(output, path) for path in paths)
            change.rows_gone[table] = change.rows_gone.get(table, 0) + rows
            change.gone += paths
        elif rules.compact is not None:
            small = [path for path in paths if _may_be_merged(output, table, path)]
            if len(small) >= rules.compact:
                shown = frozenset().union(*(ids.get(path, frozenset()) for path in small))
                change.made.append(_merge(output, staging, table, day, small, shown))
                change.gone += small
    return change


def _days(output: Place, going: Container[str]) -> dict[tuple[str, str], list[str]]:
    """The files of each table and day, oldest first. Every batch rewrites those of captures."""
    found: dict[tuple[str, str], list[str]] = {}
    for table in FOLLOWED:
        for path in output.files(table) if table != "captures" else ():
            if path.endswith(".parquet") and path != empty_path(TABLES[table]) and path not in going:
                day = path.rpartition("/")[0].rpartition("date=")[2]
                found.setdefault((table, day), []).append(path)
    return found


def _first_day(days: Mapping[tuple[str, str], Sequence[str]], keep: int | None) -> str | None:
    """The first one that stays. The clock of the captures counts, but not where it is a day ahead of this
    machine's: one packet of the year 2100 would take everything else away."""
    tomorrow = str(datetime.now(UTC).date() + timedelta(days=1))
    known = [day for _, day in days if day != NO_DATE and day <= tomorrow]
    if keep is None or not known:
        return None
    return str(date.fromisoformat(max(known)) - timedelta(days=keep - 1))


def _rows(output: Place, path: str) -> int:
    with output.open_parquet(path) as file:
        return int(file.metadata.num_rows)


def _may_be_merged(output: Place, table: str, path: str) -> bool:
    """Small, and of this version's columns."""
    size = output.size(path)
    if size is None or size >= SMALL_BYTES:
        return False
    with output.open_parquet(path) as file:
        return bool(file.schema_arrow.names == arrow_schema(TABLES[table]).names)


def _merge(  # noqa: PLR0917
    output: Place, staging: Place, table: str, day: str, paths: Sequence[str], ids: frozenset[str]
) -> Part:
    newest = paths[-1].rpartition("/")[2][:8]  # the batch: files sort as they came
    path = f"{table}/date={day}/{newest}-merged-{uuid.uuid4().hex[:12]}.parquet"
    schema = arrow_schema(TABLES[table])
    rows = 0
    with staging.open_output(path) as target:
        with part_writer(target, table, schema) as writer:
            for group in _groups(output, paths):
                writer.write_table(group.cast(schema))
                rows += group.num_rows
        size = target.tell()
    return Part(table, path, rows, size, ids)


def _groups(output: Place, paths: Sequence[str]) -> Iterator[pa.Table]:
    """Row groups of a usual size; memory is that of one."""
    waiting: list[pa.Table] = []
    for path in paths:
        with output.open_parquet(path) as file:
            for number in range(file.num_row_groups):
                waiting.append(file.read_row_group(number))
                if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS // 2:
                    yield pa.concat_tables(waiting)
                    waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)
