"""Every call and connection that findings explain: the rows of the table `finding_calls`, and their sums.

The database of an evaluation has them in `finding_entry`, by the number of the finding. The SQL is
in `account/`; what counts as harm is in `shared_views/harm.sql`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.database import lacks_memory
from kwsniff.findings.harm import is_harmed, keep_harm
from kwsniff.findings.rule import LAST, Rule
from kwsniff.findings.views import ENTRIES
from kwsniff.tables.arrays import numbers
from kwsniff.tables.schema import TABLES, coded_schema

if TYPE_CHECKING:
    import duckdb

    from kwsniff.findings.finding import Finding

TABLE: Final = "finding_calls"
NONE: Final = -1
Entries = np.ndarray[Any, np.dtype[np.int64]]
_COLUMNS: Final = ("finding_id", "call_id", "connection_id")
_FILLED: Final = ", ".join(f"coalesce({name}, {NONE}) as {name}" for name in _COLUMNS)
"""Without nulls there are no masked arrays, whose module takes longer to load than most rules to be asked."""
_ROWS: Final = 1 << 16
_NAMED: Final = re.compile(r"\$(\w+)")
_FOLDER: Final = Path(__file__).with_name("account")
_LISTED, _RUN, _FRAMED, _RELATED, _SUMS = (
    (_FOLDER / f"{name}.sql").read_text("utf-8") for name in ("listed", "run", "framed", "related", "sums")
)
_RUNS: Final = "select count(distinct run_id) from connections"
_ALL: Final = f"from {ENTRIES}"
_INSERT_LISTED: Final = """
insert into {} select unnest(split($numbers, ',')::bigint[]), unnest(split($listed, ',')::bigint[])
"""
"""As text: DuckDB makes a constant of each number of a list, which takes twice as long."""
_BEGIN: Final = """
create or replace temp table finding_row (number bigint, subject varchar, client varchar, broker varchar,
    first_time timestamptz, last_time timestamptz, expected double, explains boolean);
create or replace temp table listed_call (number bigint, call_id bigint);
create or replace temp table listed_frame (number bigint, frame bigint);
create or replace temp table all_entry (number bigint, run_id varchar, connection_id bigint, call_id bigint);
create or replace temp table other_entry (number bigint, run_id varchar, connection_id bigint,
    call_id bigint, listed boolean);
create or replace temp view finding_entry as
select *, true as listed from all_entry union all from other_entry
"""
_INSERT: Final = """
insert into finding_row select unnest($number::bigint[]), unnest($subject::varchar[]),
    unnest($client::varchar[]), unnest($broker::varchar[]), unnest($first_time::varchar[])::timestamptz,
    unnest($last_time::varchar[])::timestamptz, unnest($expected::double[]), unnest($explains::boolean[])
"""
_LIST_ALL: Final = """
insert into all_entry
with finding as (from finding_row where number in (select unnest($numbers::bigint[])))
select number, run_id, connection_id, call_id from """
_HARMED: Final = """
with harmed as (
    select run_id, connection_id, call_id from troubled_call where harm is not null
    union all select run_id, connection_id, null from troubled_connection where harm is not null
)
select number, count(*)
from (
    select distinct e.number, h.run_id, h.connection_id, h.call_id
    from finding_entry e join harmed h on h.run_id = e.run_id and h.connection_id = e.connection_id
        and h.call_id is not distinct from e.call_id
)
group by number
"""
_NUMBERED: Final = """
create or replace temp table numbered as
select unnest($numbers::bigint[]) as number, unnest($ids::bigint[]) as finding_id,
    unnest($names::varchar[]) as finding, unnest($explains::boolean[]) as explains
"""


def queries_for(rules: Iterable[Rule]) -> list[str]:
    """The queries that `list_calls` asks of findings of these rules."""
    return [_ALL, *(rule.all_calls for rule in rules if rule.all_calls)]


def create_tables(database: "duckdb.DuckDBPyConnection") -> None:
    """Makes the tables, without rows."""
    database.execute(_BEGIN)


def explain(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> None:
    """Fills `finding_entry` for findings whose numbers it does not have."""
    known = {number for (number,) in database.execute("select number from finding_row").fetchall()}
    new = [each for each in findings if each.number not in known]
    if new:
        _tell(database, new)
        database.execute(_LISTED)
        if database.execute(_RUNS).fetchall() > [(1,)]:
            database.execute(_RUN)
        if any(each.all_frames for each in findings):
            database.execute(_FRAMED)
        if any(_explains(each) for each in findings):
            keep_harm(database)
            if is_harmed(database):
                database.execute(_RELATED)


def count_harmed(database: "duckdb.DuckDBPyConnection") -> dict[int, int]:
    """Number of a finding that `explain` was given -> harmed calls and connections that it explains."""
    return dict(database.execute(_HARMED).fetchall())


def list_calls(
    database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]
) -> Iterator[pa.RecordBatch]:
    """Batches of `finding_calls` in its coded schema, of findings of this database."""
    return map(calls_batch, list_entries(database, findings))


def list_entries(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> Iterator[Entries]:
    """The same as rows of three numbers: finding, call (or NONE), connection."""
    if not findings:
        return
    explain(database, findings)
    _number(database, findings)
    database.execute(
        "create or replace temp table found_entry as select distinct finding_id, call_id, connection_id "
        "from finding_entry join numbered using (number) order by finding_id, call_id, connection_id"
    )
    ((total,),) = database.execute("select count(*) from found_entry").fetchall()
    for first in range(0, total, _ROWS):
        chosen = f"from found_entry where rowid between {first} and {first + _ROWS - 1}"
        given = database.execute(f"select {_FILLED} {chosen}").fetchnumpy()
        yield np.stack([np.asarray(given[name], np.int64) for name in _COLUMNS], axis=1)


def calls_batch(rows: Entries) -> pa.RecordBatch:
    """Rows of three numbers (finding, call, connection), NONE for none, as a batch of `finding_calls`."""
    schema = coded_schema(TABLES[TABLE])
    arrays = [
        numbers(schema.field(name).type, np.where(column == NONE, 0, column), column != NONE)
        for name, column in zip(_COLUMNS, rows.T, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def add_up(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> dict[str, Any]:
    """The accounts of calls (`account`) and of connections (`connections`): the number of all, `fine`,
    `routine` and `explained` by name, and `unexplained`, which add up; None for both where memory lacks."""
    try:
        return _add_up(database, findings)
    except Exception as error:
        if not lacks_memory(error):
            raise
        return {"account": None, "connections": None}


def _add_up(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> dict[str, Any]:
    explain(database, findings)
    keep_harm(database)
    _number(database, findings)
    ((calls, connections),) = database.execute(
        "select (select count(*) from call), (select count(*) from connection)"
    ).fetchall()
    accounts: dict[bool, dict[str, Any]] = {
        is_call: {total: number, "fine": number, "routine": {}, "explained": {}, "unexplained": 0}
        for is_call, total, number in ((True, "calls", calls), (False, "connections", connections))
    }
    for is_call, kind, name, number in database.execute(_SUMS).fetchall():
        account = accounts[is_call]
        account["fine"] -= number
        if kind == "unexplained":
            account[kind] += number
        else:
            account[kind][name] = account[kind].get(name, 0) + number
    return {"account": accounts[True], "connections": accounts[False]}


def _explains(finding: "Finding") -> bool:
    """Whether harm is explained by it: not by a fact, nor by the rule for harm that no other explains."""
    return finding.severity != "info" and not (finding.rule and finding.rule.group == LAST)


def _number(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> None:
    columns = {
        "numbers": [each.number for each in findings],
        "ids": [each.finding_id for each in findings],
        "names": [each.finding for each in findings],
        "explains": [_explains(each) for each in findings],
    }
    database.execute(_NUMBERED, columns)


def _tell(database: "duckdb.DuckDBPyConnection", findings: Sequence["Finding"]) -> None:
    """Puts findings, and what they name, into the tables; each rule is asked once for all of its findings."""
    database.execute(_INSERT, _describe(findings))
    for table, lists in (
        ("listed_call", [each.all_call_ids for each in findings]),
        ("listed_frame", [each.all_frames for each in findings]),
    ):
        sizes = [len(each) for each in lists]
        if any(sizes):
            named = np.repeat([each.number for each in findings], sizes).tolist()
            columns = {"numbers": named, "listed": chain(*lists)}
            texts = {name: ",".join(map(str, column)) for name, column in columns.items()}
            database.execute(_INSERT_LISTED.format(table), texts)
    rules = {each.rule.name: each.rule for each in findings if each.rule and each.rule.all_calls}
    for rule in rules.values():
        numbered = [each.number for each in findings if each.rule and each.rule.name == rule.name]
        values = {name: rule.floors[name] for name in {*_NAMED.findall(rule.all_calls)}}
        database.execute(
            f"{_LIST_ALL}({rule.all_calls}) where call_id is not null", {**values, "numbers": numbered}
        )


def _describe(findings: Sequence["Finding"]) -> dict[str, list[Any]]:
    """Columns of `finding_row`; times as texts, which need no time zones of Python."""
    return {
        "number": [each.number for each in findings],
        "subject": [each.subject for each in findings],
        "client": [each.parties.get("client") for each in findings],
        "broker": [each.parties.get("broker") for each in findings],
        "first_time": [each.first_time and each.first_time.isoformat() for each in findings],
        "last_time": [each.last_time and each.last_time.isoformat() for each in findings],
        "expected": [each.expected for each in findings],
        "explains": [_explains(each) for each in findings],
    }
