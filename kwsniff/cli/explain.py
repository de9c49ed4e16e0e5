"""``kwsniff explain``: a name of the protocol or of kwsniff, and the layouts of messages."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from kwsniff.cli.explain_lines import paragraph, table
from kwsniff.cli.explain_names import KINDS, LISTS, Match, explain_name, list_kind, names_of_kind
from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.errors import UsageError
from kwsniff.texts import add_version, json_text

if TYPE_CHECKING:
    from kwsniff.layout.catalog import Catalog
    from kwsniff.layout.causes import Cause
    from kwsniff.layout.listing import Line
    from kwsniff.layout.model import ApiRange
    from kwsniff.layout.program import Program
    from kwsniff.layout.reference import ErrorCode

_EXAMPLE = """examples:
  kwsniff explain fetch 12                 layout of request and response, and the
                                           releases with that version
  kwsniff explain fetch                    the versions of an API, and the releases
                                           that have them
  kwsniff explain broker_stalled           a finding, its settings, a timeline
  kwsniff explain UNKNOWN_MEMBER_ID        an error code: causes, related settings
  kwsniff explain unanswered               a status; also an anomaly, column,
                                           table or limit
  kwsniff explain limit connections        one kind, where a name has several
  kwsniff explain OffsetCommitValue 4      a schema inside a record or a bytes field
  kwsniff explain release 3.9.2            the API versions of a release
  kwsniff explain apis                     a list; also errors, schemas, releases,
                                           findings, tables, columns, statuses,
                                           anomalies, limits
"""
_LISTS = ("apis", "errors", "schemas", "releases")
_DIRECTIONS = ("request", "response")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="explain APIs, errors, findings, columns, anomalies, limits",
        description="Explain a name: an API and its layouts, an error code, a finding, a table, a column, a "
        "status, an anomaly, a limit, or the API versions of a Kafka release. A name with several meanings "
        "gets all of them.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("subject", metavar="NAME", help="a name, a kind of name, or a list")
    parser.add_argument(
        "which", metavar="WHICH", nargs="?", help="a version; after a kind, the name or an error's code"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    add_layouts_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 0. Raises UsageError for an unknown name, with the nearest known ones."""
    from kwsniff.layout.catalog import load_catalog

    facts, lines = _explain(load_catalog(), args.subject, args.which)
    if args.json:
        print(json_text(add_version(facts), indent=2))
    else:
        print("\n".join(line.rstrip() for line in lines))
    return 0


Answer = tuple[Any, Iterable[str]]


def _explain(catalog: "Catalog", subject: str, which: str | None) -> Answer:
    if which is not None:
        return _explain_two(catalog, subject, which)
    if subject in _LISTS:
        return _list(catalog, subject)
    found = [*_protocol_matches(catalog, subject), *explain_name(subject), *_list_matches(subject)]
    if not found:
        raise UsageError(f"unknown name '{subject}'{_near(subject, _list_names(catalog))}")
    if len(found) == 1 and found[0].kind in ("api", "schema"):
        return found[0].facts, found[0].lines
    return _all_of(found)


def _explain_two(catalog: "Catalog", subject: str, which: str) -> Answer:
    """A name of a kind, or a version of an API or a schema."""
    if subject in KINDS:
        return _of_kind(subject, which)
    from kwsniff.layout.spoken import owner_of

    if subject in _KINDS:
        return _KINDS[subject](owner_of(catalog, which), which)
    catalog = owner_of(catalog, subject)
    api = catalog.api(subject)
    if api is not None:
        return _layouts(catalog, api, _number(which))
    if subject in catalog.schemas:
        return _schema(catalog, subject, _number(which))
    known = [*(each.name for each in catalog.apis.values()), *catalog.schemas, *KINDS, *_KINDS]
    raise UsageError(f"'{subject}' is not an API, a schema or a kind of name{_near(subject, known)}")


def _of_kind(kind: str, name: str) -> Answer:
    found = explain_name(name, kind)
    if not found:
        raise UsageError(f"unknown {kind} '{name}'{_near(name, names_of_kind(kind), _list_of(kind))}")
    return _all_of(found)


def _list_of(kind: str) -> str:
    return next((listed for listed, of_kind in LISTS.items() if of_kind == kind), "columns")


def _all_of(found: "Sequence[Match]") -> Answer:
    """Every meaning of a name, an empty line between them."""
    lines = [line for match in found for line in (*match.lines, "")]
    return {"matches": [{"kind": match.kind, **match.facts} for match in found]}, lines[:-1]


def _protocol_matches(catalog: "Catalog", name: str) -> "Iterator[Match]":
    """What the layouts say of a name: an API, a schema, an error by name or code, a release."""
    from kwsniff.layout.spoken import owner_of

    catalog = owner_of(catalog, name)
    api = catalog.api(name)
    if api is not None:
        facts, lines = _versions(catalog, api)
        yield Match("api", facts, tuple(lines))
    if name in catalog.schemas:
        facts, lines = _schema(catalog, name, catalog.schemas[name].versions[-1])
        yield Match("schema", facts, tuple(lines))
    if _error_of(catalog, name) is not None:
        facts, lines = _error(catalog, name)
        yield Match("error", facts, tuple(lines))
    if name in catalog.releases.names:
        facts, lines = _release(catalog, name)
        yield Match("release", facts, tuple(lines))


def _list_matches(subject: str) -> "Iterator[Match]":
    if subject in LISTS:
        listed = [*list_kind(LISTS[subject])]
        lines = [line for each in table(listed, cut=True) for line in each]
        yield Match("list", {subject: [name for name, _ in listed]}, tuple(lines))


def _list_names(catalog: "Catalog") -> list[str]:
    """Every name, in the order in which the nearest ones are chosen."""
    apis = [each.name for each in catalog.apis.values()]
    errors = [error.name for error in catalog.errors.values()]
    ours = [name for kind in KINDS for name in names_of_kind(kind)]
    return [*apis, *ours, *errors, *catalog.schemas, *_LISTS, *LISTS, *KINDS, *_KINDS]


def _near(word: str, known: Iterable[str], listed: str = "apis") -> str:
    plain = {name.lower().replace("_", ""): name for name in known}
    asked = word.lower().replace("_", "")
    near = get_close_matches(asked, plain, 3, 0.6) or get_close_matches(asked, plain, 3, 0.5)
    named = " or ".join(plain[each] for each in near)
    return f"; did you mean {named}?" if near else f"; see kwsniff explain {listed}"


def _number(text: str) -> int:
    try:
        return int(text.lower().removeprefix("v"))
    except ValueError as error:
        raise UsageError(
            f"'{text}' is not a version: give a number, e.g. kwsniff explain fetch 12"
        ) from error


def _error_of(catalog: "Catalog", which: str) -> "ErrorCode | None":
    codes = {str(error.code): error for error in catalog.errors.values()}
    names = {error.name: error for error in catalog.errors.values()}
    return codes.get(which) or names.get(which.upper())


def _error(catalog: "Catalog", which: str) -> Answer:
    error = _error_of(catalog, which)
    if error is None:
        names = [each.name for each in catalog.errors.values()]
        is_code = which.lstrip("-").isdigit()
        hint = "; see kwsniff explain errors" if is_code else _near(which, names, "errors")
        raise UsageError(f"unknown error '{which}'{hint}")
    cause = catalog.causes.get(error.code)
    return {**error._asdict(), "usual": cause and cause._asdict()}, _error_lines(error, cause)


def _error_lines(error: "ErrorCode", cause: "Cause | None") -> Iterator[str]:
    yield f"error {error.code} {error.name}"
    yield from paragraph(error.meaning)
    yield f"  {'retriable: a retry may succeed' if error.retriable else 'not retriable: a retry fails again'}"
    if error.since[:1].isdigit():
        yield f"  since Kafka {error.since}"
    if cause is not None:
        yield from paragraph(cause.cause, "usual cause: ")
        for side, names in cause.settings.items():
            yield from paragraph(", ".join(names), f"settings of the {side}: ")
        yield from paragraph(cause.do)


def _release(catalog: "Catalog", which: str) -> Answer:
    spoken = catalog.releases.speaks(which)
    if not spoken:
        names = catalog.releases.names
        near = [name for name in names if name.startswith(which)][:3] or get_close_matches(
            which, names, 3, 0.6
        )
        hint = f"; did you mean {' or '.join(near)}?" if near else "; see kwsniff explain releases"
        raise UsageError(f"unknown release '{which}'{hint}")
    rows = [(str(key), catalog.apis[key].name, _range(low, high)) for key, (low, high) in spoken.items()]
    facts = [
        {"api_key": key, "name": catalog.apis[key].name, "min_version": low, "max_version": high}
        for key, (low, high) in spoken.items()
    ]
    return {"release": which, "apis": facts}, [f"Kafka {which} has these API versions", *_lines(rows)]


def _list(catalog: "Catalog", subject: str) -> Answer:
    rows: Sequence[Sequence[str]]
    if subject == "apis":
        apis = list(catalog.apis.values())
        rows = [
            (str(api.key), api.name, _range(api.min_version, api.max_version), _flexible(api.flexible_from))
            for api in apis
        ]
        facts: list[Any] = [_api_facts(api) for api in apis]
    elif subject == "errors":
        facts = [error._asdict() for error in catalog.errors.values()]
        rows = [(str(error.code), error.name, error.meaning) for error in catalog.errors.values()]
    elif subject == "schemas":
        facts = [schema._asdict() for schema in catalog.schemas.values()]
        rows = [
            (schema.module, schema.name, ",".join(map(str, schema.versions)), _flexible(schema.flexible_from))
            for schema in catalog.schemas.values()
        ]
    else:
        facts = list(catalog.releases.names)
        rows = [(name, "", "", "") for name in facts]
    return {subject: facts}, _lines(rows, cut=True)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _flexible(first: int) -> str:
    return "never flexible" if first >= 32767 else f"flexible from {first}"


def _api_facts(api: "ApiRange") -> dict[str, Any]:
    return {
        "api_key": api.key,
        "name": api.name,
        "min_version": api.min_version,
        "max_version": api.max_version,
        "flexible_from": api.flexible_from if api.flexible_from < 32767 else None,
    }


def _versions(catalog: "Catalog", api: "ApiRange") -> Answer:
    spoken = {
        version: catalog.releases.spoken_by(api.key, version)
        for version in range(api.min_version, api.max_version + 1)
    }
    rows = [
        (f"v{version}", "flexible" if version >= api.flexible_from else "classic", _span(catalog, releases))
        for version, releases in spoken.items()
    ]
    facts = _api_facts(api) | {"releases": {str(version): list(names) for version, names in spoken.items()}}
    return facts, [f"{api.name} (key {api.key}), {_flexible(api.flexible_from)}", *_lines(rows)]


def _span(catalog: "Catalog", releases: Sequence[str]) -> str:
    """Releases in words: consecutive releases are shortened to first and last."""
    if not releases:
        return "not in any known Kafka release"
    names = catalog.releases.names
    runs: list[list[str]] = []
    for name in releases:
        if runs and names.index(name) == names.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    shown = []
    for one in runs:
        last = "on" if one[-1] == names[-1] else one[-1]
        shown.append(one[0] if len(one) == 1 and last != "on" else f"{one[0]} to {last}")
    return ", ".join(shown).replace(" to on", " on")


def _layouts(catalog: "Catalog", api: "ApiRange", version: int) -> Answer:
    programs = [catalog.program(api.key, version, direction) for direction in (0, 1)]
    found = [program for program in programs if program is not None]
    if not found:
        raise UsageError(f"{api.name} has versions {api.min_version} to {api.max_version}, not {version}")
    releases = catalog.releases.spoken_by(api.key, version)
    facts = {
        "api_key": api.key,
        "name": api.name,
        "api_version": version,
        "releases": list(releases),
        **{name: _program_facts(program) for name, program in zip(_DIRECTIONS, found, strict=True)},
    }
    lines = [f"{api.name} v{version} (key {api.key}), Kafka {_span(catalog, releases)}"]
    for name, program in zip(_DIRECTIONS, found, strict=True):
        lines += ["", f"{name}: int32 size, then", *_program_lines(program)]
    return facts, lines


def _schema(catalog: "Catalog", name: str, version: int) -> Answer:
    program = catalog.schema(name, version)
    if program is None:
        known = ", ".join(map(str, catalog.schemas[name].versions))
        raise UsageError(f"{name} has versions {known}, not {version}")
    facts = catalog.schemas[name]._asdict() | {"schema_version": version} | _program_facts(program)
    return facts, [f"{name} v{version}", *_program_lines(program)]


def _program_facts(program: "Program") -> dict[str, Any]:
    from kwsniff.layout.listing import list_program

    header, body = list_program(program)
    return {"header": [asdict(line) for line in header], "body": [asdict(line) for line in body]}


def _program_lines(program: "Program") -> Iterator[str]:
    from kwsniff.layout.listing import list_program

    header, body = list_program(program)
    rows = [_row(line) for line in (*header, *body)]
    texts = table(rows)
    if header:
        yield "  header"
        yield from (line for each in texts[: len(header)] for line in each)
        yield "  body"
    yield from (line for each in texts[len(header) :] for line in each)
    if not body:
        yield "    nothing"


def _row(line: "Line") -> tuple[str, str, str]:
    notes = []
    if line.tag is not None:
        notes.append(f"tag {line.tag}")
    if line.null:
        notes.append("may be null")
    if line.default is not None:
        notes.append(f"absent = {line.default}")
    if line.meaning:
        notes.append(line.meaning)
    return "  " * (line.depth + 1) + (line.name or "*"), line.encoding, ", ".join(notes)


def _lines(rows: Sequence[Sequence[str]], *, cut: bool = False) -> list[str]:
    return [line for each in table(rows, cut=cut) for line in each]


_KINDS: Final[dict[str, Callable[["Catalog", str], Answer]]] = {"error": _error, "release": _release}
"""Kinds of names that the layouts' folder has."""
