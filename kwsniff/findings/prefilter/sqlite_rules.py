"""Rules that need only sums kept while rows pass: SQLite evaluates them, without DuckDB.

Loading and starting DuckDB takes longer than analyzing a small capture; these sums have a row per client, or
per partition, and Python's own SQLite takes the same queries of them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.evaluate import MOST_OF_ONE_RULE
from kwsniff.findings.rule import Rule
from kwsniff.texts import json_text

if TYPE_CHECKING:
    import sqlite3

Sums = Mapping[str, Mapping[str, Sequence[Any]]]

_LISTS: Final = ("call_ids",)


_SOURCE: Final = re.compile(r"\b(?:from|join)\s+(\w+)")


def _sources(rules: Sequence[Rule]) -> set[str]:
    return {name for rule in rules for name in _SOURCE.findall(rule.query)}


def suffice(sums: Sums, rules: Sequence[Rule]) -> bool:
    """Whether these rules read nothing but these sums."""
    return _sources(rules) <= sums.keys()


def ask_sums(sums: Sums, rules: Sequence[Rule]) -> list[tuple[Rule, dict[str, Any]]]:
    """The rows that the rules find, in their order; times are microseconds since 1970, as in the sums."""
    import sqlite3

    database = sqlite3.connect(":memory:")
    try:
        database.create_function("greatest", 2, max)
        database.create_function("epoch", 1, _seconds)
        for name in _sources(rules):
            _fill(database, name, sums[name])
        return [(rule, row) for rule in rules for row in _rows(database, rule)]
    finally:
        database.close()


def _seconds(microseconds: int) -> float:
    return microseconds / 1e6


def _fill(database: "sqlite3.Connection", name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    shown = [map(json_text, values) if column in _LISTS else values for column, values in columns.items()]
    database.execute(f"create table {name} ({', '.join(columns)})")
    marks = ", ".join("?" * len(columns))
    database.executemany(f"insert into {name} values ({marks})", zip(*shown, strict=True))  # noqa: S608


def _rows(database: "sqlite3.Connection", rule: Rule) -> list[dict[str, Any]]:
    found = database.execute(rule.query, dict(rule.floors))
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchmany(MOST_OF_ONE_RULE)]
    for row in rows:
        for name in _LISTS:
            row[name] = json.loads(row[name])
    return rows
