"""Reference data as views that rules join: versions by release, causes of error codes, ports.

The purposes of APIs are macros beside them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kwsniff.findings.api_purposes import PURPOSES, add_purpose
from kwsniff.tables.enums import WORDS

if TYPE_CHECKING:
    import duckdb

    from kwsniff.layout.causes import Cause


def _add_least_versions(database: "duckdb.DuckDBPyConnection") -> None:
    """least_version(api_key, least, since): what the newest release takes at least, and since which one."""
    from kwsniff.layout.catalog import load_catalog

    releases = load_catalog().releases
    rows = []
    for key, spans in releases.ranges.items():
        newest = spans[-1]
        if newest is not None and newest[0] > 0:
            since = next(
                name
                for name, span in zip(releases.names, spans, strict=True)
                if span and span[0] == newest[0]
            )
            rows.append((key, newest[0], since))
    listed = ", ".join(f"({key}, {least}, '{since}')" for key, least, since in rows)
    database.execute(f"create temp table least_version as from (values {listed}) v(api_key, least, since)")


def _add_error_causes(database: "duckdb.DuckDBPyConnection") -> None:
    """error_cause(error_code, cause, advice, asked, asked_name, owner, passes, has_rule): the blocks of
    causes.txt; `passes` is in seconds, `asked` a column of api_calls with what the client asked for."""
    from kwsniff.layout.catalog import load_catalog

    columns: dict[str, list[object]] = {name: [] for name in _CAUSE}
    for code, cause in load_catalog().causes.items():
        asked = cause.asked or (None, None)
        texts_ = cause.cause, _with_settings(cause), *asked, cause.owner
        row = code, *texts_, cause.passes_s or None, bool(cause.findings)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    # Lists take a quarter of the time of as many texts in the statement.
    chosen = ", ".join(f"unnest(${name}::{type_}[]) as {name}" for name, type_ in _CAUSE.items())
    database.execute(f"create temp table error_cause as select {chosen}", columns)


_CAUSE: Final = {
    "error_code": "integer",
    **dict.fromkeys(("cause", "advice", "asked", "asked_name", "owner"), "varchar"),
    "passes": "integer",
    "has_rule": "boolean",
}


def _with_settings(cause: "Cause") -> str:
    """What to change, and the settings that decide as far as that does not name them."""
    named = [
        f"{name} ({side})" for side, names in cause.settings.items() for name in names if name not in cause.do
    ]
    return f"{cause.do} Settings: {', '.join(named)}." if named else cause.do


def _add_foreign_protocols(database: "duckdb.DuckDBPyConnection") -> None:
    """foreign_protocol(protocol, what, port): a row for each usual port, and one with port null."""
    from kwsniff.layout.protocols import load_protocols

    rows = [
        (name, WORDS["protocol"][name], port)
        for name, protocol in load_protocols().items()
        for port in (None, *protocol.ports)
    ]
    listed = ", ".join(f"('{name}', '{what}', {port or 'null'})" for name, what, port in rows)
    database.execute(f"create temp table foreign_protocol as from (values {listed}) v(protocol, what, port)")


def _add_protocol_rules(database: "duckdb.DuckDBPyConnection") -> None:
    """protocol_rule(quirk, rule): the rule that each quirk breaks, one sentence."""
    from kwsniff.layout.quirks import load_quirks

    rules = {name: quirk.rule for name, quirk in load_quirks().items()}
    database.execute(
        "create temp table protocol_rule as select unnest($1::varchar[]) as quirk, "
        "unnest($2::varchar[]) as rule",
        [[*rules], [*rules.values()]],
    )


def _add_quirks(database: "duckdb.DuckDBPyConnection") -> None:
    """product_quirk(product, quirk, api_name, least, most, error_code): what is normal at servers of which
    product, of any API where `api_name` is null."""
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.layout.quirks import load_quirks
    from kwsniff.layout.spoken import error_codes

    codes = error_codes(load_catalog())
    columns: dict[str, list[object]] = {name: [] for name in _QUIRK}
    for name, quirk in load_quirks().items():
        for place in quirk.places:
            row = place.product, name, place.api, *place.versions, codes.get(place.error or "")
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    chosen = ", ".join(f"unnest(${name}::{type_}[]) as {name}" for name, type_ in _QUIRK.items())
    database.execute(f"create temp table product_quirk as select {chosen}", columns)


_QUIRK: Final = {
    **dict.fromkeys(("product", "quirk", "api_name"), "varchar"),
    **dict.fromkeys(("least", "most", "error_code"), "integer"),
}


REFERENCES: Final[dict[str, "Callable[[duckdb.DuckDBPyConnection], None]"]] = {
    "least_version": _add_least_versions,
    "error_cause": _add_error_causes,
    "foreign_protocol": _add_foreign_protocols,
    "protocol_rule": _add_protocol_rules,
    "product_quirk": _add_quirks,
    **{purpose: partial(add_purpose, purpose=purpose) for purpose in PURPOSES},
}
"""Name of a view, or of a macro -> the function that adds it to a database."""
