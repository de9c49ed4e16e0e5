"""What calls and connections suffered (shared_views/harm.sql), kept for the queries that ask for it.

Planning those views takes longer than a small capture has calls: one that cannot have rows is replaced.
"""

from typing import TYPE_CHECKING, Final

from kwsniff.findings.views import HARM, add_views, keep_small, statements_of

if TYPE_CHECKING:
    import duckdb

_THERE: Final = """
select exists (from api_calls where status = 'unanswered'),
    exists (from latencies where total_ns >= 1000000000), exists (from error_codes where error_code <> 0),
    exists (from connections where closed_by = 'broker' and calls = 0),
    exists (from connections where refused or syn_retries > 0 or broker_packets = 0 or tls_hello
        or closed_by = 'broker' and calls = 0 or protocol not in ('empty', 'kafka', 'tls', 'undecided')
        or coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) > 0)
"""
_CONNECTION: Final = "''::varchar as run_id, 0::bigint as connection_id"
_PARTY: Final = (
    "''::varchar as client, ''::varchar as client_address, ''::varchar as broker, "
    "null::timestamptz as time, null::timestamptz as until"
)
_CALL: Final = f"{_CONNECTION}, 0::bigint as call_id, {_PARTY}, ''::varchar as api_name"
_JUDGED: Final = "''::varchar as harm, ''::varchar as routine, false as known"
_EMPTY: Final = {
    "troubled_wait": f"{_CALL}, {_JUDGED}, false as plain",
    "troubled_late": _CALL,
    "troubled_refusal": f"{_CALL}, ''::varchar as routine, 0::int as error_code, ''::varchar as error, "
    "false as passed",
    "known_close": _CONNECTION,
    "troubled_connection": f"{_CONNECTION}, {_PARTY}, {_JUDGED}, 0::bigint as frame",
}


def keep_harm(database: "duckdb.DuckDBPyConnection") -> None:
    """Makes the views of harm, and asks `troubled_call` and `troubled_connection` once."""
    kept = "select count(*) from duckdb_tables() where table_name = 'troubled_connection_rows'"
    if database.execute(kept).fetchall() != [(0,)]:
        return
    ((unanswered, long, refused, unheard, odd),) = database.execute(_THERE).fetchall()
    there = {
        "troubled_wait": unanswered,
        "troubled_late": long,
        "troubled_refusal": refused,
        "known_close": unanswered or unheard,
        "troubled_connection": odd or unanswered,
    }
    made = {name: text for name, text in statements_of(HARM[:-1]).items() if there.get(name, True)}
    add_views(database, made.values())
    keep_small(database, made.values())
    for name in HARM[:-1]:
        empty = f"create temp view {name} as select {_EMPTY.get(name)} where false"
        # a time before, memory may not have sufficed for all
        database.execute(made.get(name, empty).replace("create temp", "create or replace temp", 1))
        if name in ("troubled_call", "troubled_connection"):
            database.execute(f"create or replace temp table {name}_rows as from {name}")
            database.execute(f"create or replace temp view {name} as from {name}_rows")
