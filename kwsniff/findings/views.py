"""A folder of tables, of `analyze`, `live` or `pipeline` alike, as one database of views."""

import os
import re
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwsniff.errors import UsageError
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, open_database
from kwsniff.findings.made_views import made_in
from kwsniff.findings.references import REFERENCES
from kwsniff.findings.simple_views import ABSENT, are_empty, simplify
from kwsniff.findings.small_tables import TABLES_OF_FEW, are_few, are_small
from kwsniff.findings.table_views import FEW, check_files, columns_in, show_no_rows, show_rows, source_of
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import files_of_tables
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FOUND: Final = frozenset({"findings", "finding_calls"})
"""Tables that rules fill; the others are what they read."""
READ: tuple[str, ...] = tuple(name for name in TABLES if name not in FOUND)
_SMALL = 64 << 20
"""Bytes of files for which threads cost more than they save."""
_LARGE: Final = 256 << 10
"""Bytes of a file that may hold texts by the megabyte once it is unpacked."""
_MB_OF_A_THREAD: Final = 125
"""What one takes of large tables at the least, by DuckDB's own guide."""
MEMORY = "512MB"
"""What DuckDB may take; beyond that it uses the disk."""


def with_sources(tables: Sequence[str]) -> tuple[str, ...]:
    """These tables, and those that findings are made of where they are wanted."""
    wanted = set(tables) if FOUND.isdisjoint(tables) else {*tables, *READ, "findings"}
    return tuple(name for name in TABLES if name in wanted)


def is_folder_of_tables(place: str | os.PathLike[str]) -> bool:
    """Whether kwsniff has written tables there."""
    folder = Path(place)
    return any(
        (folder / f"{name}.parquet").is_file() or (folder / name).is_dir()
        for name in ("api_calls", "connections")
    )


def open_folder(
    folder: str | os.PathLike[str],
    *,
    memory: str = MEMORY,
    copies: Path | None = None,
    every_view: bool = True,
) -> "duckdb.DuckDBPyConnection":
    """The tables of a folder as views for rules. `memory`: what DuckDB may take; `copies`: a folder for those
    tables whose long texts have to be cut, which stays as long as the database; without it, their rows are
    kept in memory. `every_view`: False where `add_views` makes the shared views that are needed. Raises
    UsageError where the folder holds no tables, or damaged ones."""
    place = Path(folder)
    sources = files_of_tables(place)
    if "api_calls" not in sources or "connections" not in sources:
        raise UsageError(
            f"{place} has no tables of kwsniff (api_calls, connections); write them with "
            "`kwsniff analyze CAPTURE -o DIR`"
        )
    check_files(sources)
    return _create_views(
        open_database(),
        sources,
        _views(),
        wanted={*READ, *(_views() if every_view else ())},
        columns=None,
        memory=memory,
        copies=copies,
    )


@contextmanager
def open_for(
    queries: Iterable[str],
    sources: Mapping[str, Sequence[str | os.PathLike[str]]],
    *,
    twins: bool,
    unnamed: bool = True,
    servers: bool = True,
    sums: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    memory: str = MEMORY,
    long_texts: bool = False,
    one_run: bool = False,
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """As open_folder, for files, and only for these queries: a connection with nothing but `execute`.

    Only tables, columns and views that they name are there: each one costs a look into its files, and each
    column time to plan every query. `twins`: whether a connection may be a twin of another. `unnamed`:
    whether a call may name no client; `servers`: whether one may be of a server. `sums`: views whose rows are
    known already, by column. `memory`: what DuckDB may take. `long_texts`: some are known to be so long that
    rows must not be compared by them. `one_run`: all rows are of one run of this kwsniff, whose id is then
    neither read nor compared.
    """
    known = sums or {}
    absent = [name for name, there in zip(ABSENT, (twins, unnamed, servers), strict=True) if not there]
    views = {name: text for name, text in simplify(_views(), absent).items() if name not in known}
    asked = [*queries]
    everything, named = _named_in(asked, views)
    # What harm alone needs waits for `add_views`: most captures have none.
    wanted, _ = _named_in(asked, {name: views[name] for name in views if name not in HARM[:-1]})
    with temporary_folder() as folder, open_database(bare=True) as database:
        filled = [*named.intersection(known)]
        for name in filled:
            _fill(database, name, known[name])
        made = made_in(database)
        made.tables.update(filled)
        made.absent = absent
        _create_views(
            database, sources, views, wanted=wanted, later=everything - wanted, columns=named, memory=memory,
            long_texts=long_texts, copies=Path(folder), one_run=one_run,
        )  # fmt: skip
        yield database


_RUN: Final = "run_id"
_SUM_TYPES: Final = {"call_ids": "bigint[]"} | dict.fromkeys(
    ("client", "clients", "kind", "broker", "topic"), "varchar"
)


def _fill(database: "duckdb.DuckDBPyConnection", name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """A table of a few rows. Arrow's would need DuckDB's package, which takes longer to load."""
    chosen = []
    for column in columns:
        value = f"unnest(${column}::{_SUM_TYPES.get(column, 'bigint')}[])"
        chosen.append(f'{f"make_timestamptz({value})" if column.endswith("_time") else value} as "{column}"')
    database.execute(f"create temp table {name} as select {', '.join(chosen)}", columns)


def _create_views(
    database: "duckdb.DuckDBPyConnection",
    sources: Mapping[str, Sequence[str | os.PathLike[str]]],
    views: Mapping[str, str],
    *,
    wanted: Container[str],
    columns: Container[str] | None,
    later: Container[str] = (),
    memory: str = MEMORY,
    long_texts: bool = False,
    copies: Path | None = None,
    one_run: bool = False,
) -> "duckdb.DuckDBPyConnection":
    """`later`: tables that wait for `add_views`."""
    _set_up(database, memory)
    shown = [name for name in READ if name in wanted or name in later]
    chosen = {name: [*sources[name]] for name in shown if sources.get(name)}
    shortened = long_texts or _long_texts_in(chosen)
    size = sum(Path(file).stat().st_size for listed in sources.values() for file in listed)
    if max(map(len, chosen.values()), default=0) > FEW:
        database.execute("set parquet_metadata_cache = false")
    if size < _SMALL or int(memory.removesuffix("MB")) < _MB_OF_A_THREAD:
        database.execute("set threads = 1")
    made = made_in(database)
    kept = made.few = not shortened and are_small(chosen.values(), memory)
    for name in shown:
        if name in chosen and shortened:
            _take_short(database, name, chosen[name], columns, copies)
            continue
        statement = show_no_rows(name, kept=kept)
        if listed := chosen.get(name):
            there = _of_today(name) if one_run else columns_in(database, listed)
            statement = show_rows(name, source_of(listed), there, columns, kept=kept)
        if name in wanted:
            database.execute(statement)
        else:
            made.waiting[name] = statement
    return _with_views(database, views, wanted, each=columns is None)


def _of_today(table: str) -> set[str]:
    """The columns of a table in files of this kwsniff, without the run."""
    return {column.name for column in TABLES[table].columns} - {_RUN}


def _long_texts_in(files_: Mapping[str, Sequence[str | os.PathLike[str]]]) -> bool:
    """Whether one of the files holds texts that have to be cut; then all are, so that they still join."""
    large = [file for listed in files_.values() for file in listed if Path(file).stat().st_size >= _LARGE]
    if not large:
        return False
    from kwsniff.findings.short_texts import has_long_texts

    return any(map(has_long_texts, large))


def _take_short(
    database: "duckdb.DuckDBPyConnection",
    name: str,
    listed: Sequence[str | os.PathLike[str]],
    columns: Container[str] | None,
    folder: Path | None,
) -> None:
    """A table whose long texts are cut: copies in `folder`, where there is one that is there as long as the
    database; else DuckDB keeps the rows, which takes memory that it does not count."""
    from kwsniff.findings.short_texts import copy_shortened

    with temporary_folder() if folder is None else nullcontext(folder) as place:
        copies = [Path(place, f"{name}-{number}.parquet") for number in range(len(listed))]
        for file, copy in zip(listed, copies, strict=True):
            copy_shortened(file, copy, columns)
        there = columns_in(database, copies)
        database.execute(show_rows(name, source_of(copies), there, columns, kept=folder is None))


def open_tables(
    tables: Mapping[str, "pa.Table"], queries: Iterable[str] | None = None, memory: str = MEMORY
) -> "duckdb.DuckDBPyConnection":
    """Tables in memory as views for rules; those that are missing have no rows. `queries` and `memory`: as
    open_for."""
    database = open_database()
    _set_up(database, memory)
    views = _views()
    wanted, named = _named_in(queries, views) if queries is not None else ({*READ, *views}, None)
    if queries is not None:
        database.execute("set threads = 1")
    chosen = {name: rows for name, rows in tables.items() if name in wanted and name in READ}
    kept = made_in(database).few = are_few(chosen.values(), memory)
    for name in READ:
        if name not in wanted:
            continue
        rows = tables.get(name)
        given = arrow_schema(TABLES[name]).empty_table() if rows is None else rows
        database.register(f"{name}_rows", given)
        database.execute(show_rows(name, f"{name}_rows", given.column_names, named, kept=kept))
    return _with_views(database, views, wanted, each=queries is None)


def _named_in(queries: Iterable[str], views: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """The tables and views that queries need, and every name in them: columns among others."""
    named, wanted = set(re.findall(r"\w+", re.sub("--.*", "", "\n".join(queries)))), set[str]()
    for name in reversed([*views]):
        if name in named:
            wanted.add(name)
            named |= set(re.findall(r"\w+", views[name]))
    return {*wanted, *named.intersection(READ)}, named


def statements_of(names: Iterable[str]) -> Mapping[str, str]:
    """Name of a shared view -> the statement that makes it."""
    return {name: _views()[name] for name in names}


def add_views(database: "duckdb.DuckDBPyConnection", queries: Iterable[str]) -> None:
    """Makes the shared views that these queries need and that are not there yet."""
    made = made_in(database)
    views = {name: text for name, text in simplify(_views(), made.absent).items() if name not in HARM[:-1]}
    needed, _ = _named_in(queries, views)
    for name in needed & made.waiting.keys():
        database.execute(made.waiting.pop(name))
    _with_views(database, views, {name for name in needed if not made.has(name)})


def columns_named(queries: Iterable[str]) -> set[str]:
    """Every column that rules with these queries may read, and other names."""
    return _named_in(queries, _views())[1]


SMALL: Final = (
    "twin", "commit_call", "server_error", "refusing", "restart", "renewal", "lone_topic", "lone_topics",
    "blind", "lossy", "lacking", "fetch_sum", "span", "stretch", "last_moment", "explained_close",
    "closed_unheard", "after_silence", "boxed", "standing_read",
)  # fmt: skip
"""Views of few rows that take a look at all calls, in the order in which they need each other."""


def keep_small(database: "duckdb.DuckDBPyConnection", queries: Iterable[str]) -> None:
    """Small views that these queries need are asked once, and not again for each query that names them; all
    views are small where the tables are. Those of harm are the caller's."""
    made = made_in(database)
    shown = made.views - are_empty(made.absent)
    views = {name: text for name, text in _views().items() if name not in HARM}
    needed, _ = _named_in(queries, views)
    for name in views if made.few else SMALL:
        if name in needed & shown:
            database.execute(f"create temp table if not exists {name}_rows as from {name}")
            database.execute(f"create or replace temp view {name} as from {name}_rows")
            made.keep(name)


def _set_up(database: "duckdb.DuckDBPyConnection", memory: str = MEMORY) -> None:
    # What does not fit goes where temporary files go, not into the current directory; DuckDB removes it.
    spare = quote(str(Path(tempfile.gettempdir(), f"kwsniff-findings-{os.getpid()}")))
    database.execute(
        f"set TimeZone = 'UTC'; set memory_limit = '{memory}'; set temp_directory = {spare}; "
        "set parquet_metadata_cache = true; "
        # For what it takes to be few rows, which estimates of views seldom are, DuckDB compares all pairs.
        "set asof_loop_join_threshold = 0"
    )
    hush(database)


_OF_VIEWS: Final = ("calls", "restarts", "replicas", "spans", "sums", "opening", "closes", "progress", "harm")
"""Files of shared_views/, in the order in which they need each other."""


@cache
def _views() -> Mapping[str, str]:
    """Name of a view or macro -> the statement that makes it, in order; empty for those of references.py."""
    texts = [(_FOLDER / f"{name}.sql").read_text("utf-8") for name in _OF_VIEWS]
    text = re.sub("--.*", "", "".join(texts))
    made = {found[1]: each for each in text.split(";") if (found := _MADE.search(each))}
    return {**dict.fromkeys(REFERENCES, ""), **made, ENTRIES: _named_by_account()}


def _named_by_account() -> str:
    """What `finding_entry`, of tables that finding_calls.py fills, is made of."""
    names = sorted(_FOLDER.with_name("account").glob("*.sql"))
    return re.sub("--.*", "", "".join(each.read_text("utf-8") for each in names))


ENTRIES: Final = "finding_entry"
HARM: Final = (
    "routine_error", "known_close", "whole_connection", "troubled_wait", "troubled_late", "troubled_refusal",
    "troubled_read", "troubled_write", "troubled_call", "troubled_connection", ENTRIES,
)  # fmt: skip
"""Views of shared_views/harm.sql, and the table that is filled with what they have: harm.py makes them."""
_FOLDER: Final = Path(__file__).with_name("shared_views")
_MADE: Final = re.compile(r"create temp view (\w+)")


def _with_views(
    database: "duckdb.DuckDBPyConnection",
    views: Mapping[str, str],
    wanted: Container[str],
    *,
    each: bool = False,
) -> "duckdb.DuckDBPyConnection":
    """Makes those of the views that are wanted. Of few rows they are tables; `each`: only those that most
    rules name, since all views are made, and few are asked."""
    made = made_in(database)
    for name, add in REFERENCES.items():
        if name in wanted:
            add(database)
            made.tables.add(name)
    empty = are_empty(made.absent)
    for name, statement in views.items():
        if not statement or name not in wanted or name in HARM:
            continue
        is_kept = made.few and name not in empty and (name in TABLES_OF_FEW or not each)
        database.execute(statement.replace("temp view", "temp table", 1) if is_kept else statement)
        (made.tables if is_kept else made.views).add(name)
    return database
