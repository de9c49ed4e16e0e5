"""The harm of calls and connections (shared_views/harm.sql), kept for later queries.

Planning those views takes longer than a small capture has calls: one that cannot have rows is replaced.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kwsniff.findings.made_views import made_in
from kwsniff.findings.views import HARM, add_views, keep_small, statements_of
from kwsniff.tables.arrays import Numbers
from kwsniff.tables.harm import KEYS, NONE, WORDS, find_codes

if TYPE_CHECKING:
    import duckdb

    from kwsniff.findings.finding import Finding

_OF_CALLS: Final = """
select exists (from api_calls where status = 'unanswered' or reason = 'cut_off_by_client'),
    exists (from latencies where total_ns >= 1000000000), exists (from error_codes where error_code <> 0),
    exists (from api_calls where status = 'unanswered' and acks is not null)
        or exists (from error_codes where error_code in (7, 20))
"""
_OF_CONNECTIONS: Final = """
select coalesce(bool_or(closed_by = 'broker' and calls = 0), false),
    coalesce(bool_or(refused or syn_retries > 0 or broker_packets = 0 or tls_hello
        or closed_by = 'broker' and calls = 0 or protocol not in ('empty', 'kafka', 'tls', 'undecided')
        or coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) > 0), false)
from connections
"""
_SIGNS: Final = "harm_sign"
_UNSURE: Final = frozenset({7, 20})
"""Errors after which a batch may be stored or not."""
_OF_TABLES: Final = {"api_calls": "troubled_call", "connections": "troubled_connection"}
_KEPT: Final = ("troubled_wait", "troubled_late", "troubled_refusal", "troubled_call", "troubled_connection")
"""Views whose rows are kept."""
_LAST: Final = _KEPT[-1]
_HARMED: Final = " or ".join(f"exists (from {name} where harm is not null)" for name in _OF_TABLES.values())
_CONNECTION: Final = "''::varchar as run_id, 0::bigint as connection_id"
_PARTY: Final = (
    "''::varchar as client, ''::varchar as client_address, ''::varchar as broker, "
    "null::timestamptz as time, null::timestamptz as until"
)
_CALL: Final = f"{_CONNECTION}, 0::bigint as call_id, {_PARTY}, ''::varchar as api_name"
_JUDGED: Final = "''::varchar as harm, ''::varchar as routine, false as known"
_EMPTY: Final = {
    "routine_error": "0::int as error_code, ''::varchar as routine, false as always",
    "whole_connection": _CONNECTION,
    "troubled_wait": f"{_CALL}, {_JUDGED}, false as plain",
    "troubled_late": _CALL,
    "troubled_refusal": f"{_CALL}, ''::varchar as routine, 0::int as error_code, ''::varchar as error, "
    "false as passed",
    "troubled_read": f"{_CALL}, ''::varchar as harm",
    "troubled_write": f"{_CALL}, ''::varchar as harm",
    "known_close": _CONNECTION,
    "troubled_connection": f"{_CONNECTION}, {_PARTY}, {_JUDGED}, 0::bigint as frame",
}


def keep_harm(database: "duckdb.DuckDBPyConnection") -> None:
    """Makes the views of harm, and asks `troubled_call` and `troubled_connection` once."""
    if _is_kept(database):
        return
    unanswered, long, refused, unsure = _find_signs(database)
    add_views(database, [_OF_CONNECTIONS])
    ((unheard, odd),) = database.execute(_OF_CONNECTIONS).fetchall()
    there = {
        "routine_error": refused,
        "whole_connection": unanswered or long,
        "troubled_wait": unanswered,
        "troubled_late": long,
        "troubled_refusal": refused,
        "troubled_read": "standing_read" in made_in(database).tables,
        "troubled_write": unsure,
        "known_close": unanswered or unheard,
        "troubled_connection": odd or unanswered,
    }
    made = {name: text for name, text in statements_of(HARM[:-1]).items() if there.get(name, True)}
    add_views(database, made.values())
    keep_small(database, made.values())
    for name in HARM[:-1]:
        empty = f"create temp view {name} as select {_EMPTY.get(name)} where false"
        made_as = made.get(name, empty)
        if name in _KEPT:
            # A view is planned when it is made, and again for each query that names it.
            made_as = made_as.replace("temp view", "temp table", 1)
        # a time before, memory may not have sufficed for all
        database.execute(made_as.replace("create temp", "create or replace temp", 1))
    made_in(database).tables.add(_LAST)


def note_signs(
    database: "duckdb.DuckDBPyConnection", *, unanswered: bool, long: bool, errors: frozenset[int]
) -> None:
    """Notes what figures tell of all calls, so that these need not be looked through for it: whether one has
    no response, whether one took a second, and the error codes."""
    if unanswered:
        return  # what was written without a response, only the rows tell
    told = (False, long, bool(errors - {0}), bool(errors & _UNSURE))
    values = ", ".join(str(each).lower() for each in told)
    database.execute(f"create temp table {_SIGNS} as from (values ({values}))")
    made_in(database).tables.add(_SIGNS)


def _find_signs(database: "duckdb.DuckDBPyConnection") -> Sequence[bool]:
    """Whether calls are unanswered, took long, had errors, and may have been stored or not."""
    asked = f"from {_SIGNS}" if made_in(database).has(_SIGNS) else _OF_CALLS
    add_views(database, [asked])
    (found,) = database.execute(asked).fetchall()
    return found


def is_harmed(database: "duckdb.DuckDBPyConnection") -> bool:
    """Whether a call or a connection suffered harm, once `keep_harm` has looked."""
    ((found,),) = database.execute(f"select {_HARMED}").fetchall()
    return bool(found)


def _is_kept(database: "duckdb.DuckDBPyConnection") -> bool:
    return made_in(database).has(_LAST)


class FoundHarm:
    """What calls and connections suffered, of a database whose findings were asked, with all of them."""

    def __init__(self, database: "duckdb.DuckDBPyConnection", findings: "Sequence[Finding]") -> None:
        self._database = database
        self.tables: tuple[str, ...] = ()
        """Tables with rows that were harmed."""
        if any(each.severity != "info" for each in findings):
            keep_harm(database)
        if _is_kept(database):
            self.tables = tuple(name for name in KEYS if self._keep(name))

    def codes(self, table: str, keys: Numbers) -> Numbers:
        """The code of each row with these numbers, or NONE; see kwsniff/tables/harm.py."""
        if not len(keys) or table not in self.tables:
            return np.full(len(keys), NONE, np.int8)
        within = f"from harm_of_{table} where key between $first and $last order by key"
        bounds = {"first": int(keys.min()), "last": int(keys.max())}
        return find_codes(keys, *self._fetch(within, bounds))

    def all_of(self, table: str) -> tuple[Numbers, Numbers]:
        """The numbers of harmed rows, in order, and their codes."""
        return self._fetch(f"from harm_of_{table} order by key")

    def _fetch(self, query: str, values: Mapping[str, int] | None = None) -> tuple[Numbers, Numbers]:
        found = self._database.execute(query, values).fetchnumpy()
        return np.asarray(found["key"], np.int64), np.asarray(found["code"], np.int8)

    def _keep(self, table: str) -> bool:
        """A table of harmed rows, in order: DuckDB then looks into few blocks of it for rows of one group."""
        made = f"create or replace temp table harm_of_{table} as select {KEYS[table]} as key, "
        code = f"coalesce(list_position($words::varchar[], harm) - 1, {NONE})::tinyint as code "
        harmed = f"from {_OF_TABLES[table]} where harm is not null order by key"
        self._database.execute(made + code + harmed, {"words": [*WORDS[table]]})
        return bool(self._database.execute(f"from harm_of_{table} limit 1").fetchall())
