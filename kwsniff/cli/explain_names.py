"""What `kwsniff explain NAME` prints of kwsniff's own names: findings, tables, columns, words, limits."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kwsniff.cli.explain_lines import pairs, paragraph

if TYPE_CHECKING:
    from kwsniff.findings.rule import Rule
    from kwsniff.tables.column import Column, TableSchema


class Match(NamedTuple):
    """One meaning of a name, for JSON and for the screen."""

    kind: str
    facts: Mapping[str, Any]
    lines: tuple[str, ...]


def explain_name(name: str, kind: str | None = None) -> list[Match]:
    """Every meaning of a name, or only those of one kind: a name may be a table and a limit as well."""
    asked = name.lower().replace("-", "_")
    kinds = KINDS if kind is None else {kind: KINDS[kind]}
    return [match for explain in kinds.values() for match in explain(asked)]


def names_of_kind(kind: str) -> list[str]:
    """All names of a kind, in the order of their declarations."""
    return list(dict.fromkeys(_NAMES[kind]()))


def list_kind(kind: str) -> Iterator[tuple[str, str]]:
    """Names of a kind, each with the beginning of its explanation."""
    for name in names_of_kind(kind):
        yield name, _FIRST_TEXT[kind](name)


def _findings() -> "dict[str, Rule]":
    from kwsniff.findings.rule import UPGRADE, load_rules, read_rules

    return {rule.name: rule for rule in (*load_rules(), *read_rules(UPGRADE))}


def _tables() -> "dict[str, TableSchema]":
    from kwsniff.tables.aggregates import AGGREGATES
    from kwsniff.tables.schema import TABLES

    return {**TABLES, **AGGREGATES}


def _columns() -> "dict[str, dict[str, Column]]":
    """Name -> table -> the column."""
    found: dict[str, dict[str, Column]] = {}
    for table in _tables().values():
        for column in table.columns:
            found.setdefault(column.name, {})[table.name] = column
    return found


def _words() -> Mapping[str, Mapping[str, str]]:
    from kwsniff.tables.enums import WORDS

    return WORDS


def _plain(text: str) -> str:
    """A text of the docs without their links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def _finding(name: str) -> Iterator[Match]:
    rule = _findings().get(name)
    if rule is None:
        return
    facts = {
        "name": rule.name, "group": rule.group, "severity": rule.severity, "confidence": rule.confidence,
        "blames": rule.blames, "subject_kind": rule.subject_kind, "unit": rule.unit,
        "does": rule.fill(rule.does), "matters": rule.matters, "silent": rule.fill(rule.silent),
        "mistaken_for": dict(rule.mistaken_for), "timeline": rule.timeline.splitlines(),
        "settings": list(rule.settings), "advice": rule.plain_advice, "explained_by": list(rule.explained_by),
    }  # fmt: skip
    lines = [
        f"finding {name}: {rule.severity}, {rule.confidence}, owner: {rule.blames}",
        *paragraph(rule.fill(rule.does)),
        *paragraph(rule.matters, "Why it matters: "),
        *paragraph(rule.fill(rule.silent), "Exceptions: "),
        "  May be mistaken for:",
        *pairs(rule.mistaken_for.items()),
        "  Timeline:",
        *(f"    {line}" for line in facts["timeline"]),
        *paragraph(", ".join(rule.settings), "Settings: "),
    ]
    if rule.plain_advice:
        lines += paragraph(rule.plain_advice, "What to do: ")
    if rule.explained_by:
        lines += paragraph(", ".join(rule.explained_by), "May follow from: ")
    yield Match("finding", facts, tuple(lines))


def _table(name: str) -> Iterator[Match]:
    table = _tables().get(name)
    if table is None:
        return
    facts = {
        "name": name, "row": table.row, "doc": _plain(table.doc),
        "columns": [asdict(column) for column in table.columns],
    }  # fmt: skip
    lines = [f"table {name}", *paragraph(table.row, "One row: "), *paragraph(_plain(table.doc)), "  Columns:"]
    lines += pairs((column.name, column.doc) for column in table.columns)
    yield Match("table", facts, tuple(lines))


def _column(name: str) -> Iterator[Match]:
    tables = _columns().get(name, {})
    alike: dict[tuple[Any, ...], tuple[Column, list[str]]] = {}
    for table, column in tables.items():
        said = column.type, column.unit, column.doc, column.null, column.enum, column.source
        alike.setdefault(said, (column, []))[1].append(table)
    for column, named in alike.values():
        unit = f", in {column.unit}" if column.unit else ""
        lines = [
            f"column {name}: {column.type}{unit}",
            *paragraph(column.doc),
            *paragraph(", ".join(named), "In: "),
            *paragraph(column.source, "From: "),
            *paragraph(column.null or "never", "Null: "),
        ]
        if column.enum:
            lines += ["  One of:", *pairs(_words()[column.enum].items())]
        yield Match("column", {**asdict(column), "tables": named}, tuple(lines))


def _word(name: str, lists: Iterable[str]) -> Iterator[Match]:
    for listed in lists:
        meaning = _words()[listed].get(name)
        if meaning is not None:
            facts = {"name": name, "list": listed, "meaning": meaning}
            lines = (f"{_say(listed)} {name}", *paragraph(meaning))
            yield Match(_say(listed), facts, lines)


def _say(listed: str) -> str:
    return listed.replace("_", " ")


_APART: Final = ("status", "anomaly")
"""Lists that are kinds of their own; words of all others are of the kind `word`."""


def _limit(name: str) -> Iterator[Match]:
    from kwsniff.limits import Limits, limit_texts

    text = limit_texts().get(name)
    if text is None:
        return
    default, (least, greatest) = Limits().as_dict()[name], Limits.ranges()[name]
    facts = {"name": name, "default": default, "least": least, "greatest": greatest, "meaning": text}
    lines = (
        f"limit {name}: {default:,} by default, {least:,} to {greatest:,}",
        *paragraph(text),
        f"  Set it: --limit {name}=N",
    )
    yield Match("limit", facts, lines)


def _limits() -> Mapping[str, str]:
    from kwsniff.limits import limit_texts

    return limit_texts()


def _others() -> list[str]:
    return [listed for listed in _words() if listed not in _APART]


KINDS: Final[Mapping[str, Callable[[str], Iterator[Match]]]] = {
    "finding": _finding,
    "table": _table,
    "column": _column,
    "status": lambda name: _word(name, ("status",)),
    "anomaly": lambda name: _word(name, ("anomaly",)),
    "limit": _limit,
    "word": lambda name: _word(name, _others()),
}
"""Kind of a name -> its meanings of that kind."""

LISTS: Final = {
    "findings": "finding", "tables": "table", "columns": "column", "statuses": "status",
    "anomalies": "anomaly", "limits": "limit",
}  # fmt: skip
"""What lists all names of a kind."""

_NAMES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "finding": _findings,
    "table": _tables,
    "column": _columns,
    "status": lambda: _words()["status"],
    "anomaly": lambda: _words()["anomaly"],
    "limit": _limits,
    "word": lambda: (word for listed in _others() for word in _words()[listed]),
}
_FIRST_TEXT: Final[Mapping[str, Callable[[str], str]]] = {
    "finding": lambda name: _findings()[name].fill(_findings()[name].does).removeprefix("Fires when "),
    "table": lambda name: _plain(_tables()[name].doc),
    "column": lambda name: next(iter(_columns()[name].values())).doc,
    "status": lambda name: _words()["status"][name],
    "anomaly": lambda name: _words()["anomaly"][name],
    "limit": lambda name: _limits()[name],
}
