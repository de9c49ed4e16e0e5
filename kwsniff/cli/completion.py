"""Completion scripts for shells, and the manual page; both are generated from the parsers."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import Final

_FILES: Final = frozenset({"CAPTURE", "INPUT", "GOOD", "BAD", "FILE", "TIME|FILE"})
_DIRECTORIES: Final = frozenset({"DIR"})


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """A completion script for a shell. The parser cannot be used afterwards."""
    import shtab

    for action in _actions(parser):
        _say_values(action)
        first = str(action.metavar or "").partition("|")[0]
        if first in _DIRECTORIES:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif first in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    # In zsh "(*)" excludes every argument after the first repeatable one.
    return str(shtab.complete(parser, shell)).replace('"(*):', '"*:')


def manual(version: str) -> str:
    """The manual page of all verbs, for `man -l -`. kwsniff.1 is made by `python -m tests.house.pages`."""
    page = resources.files("kwsniff.cli").joinpath("kwsniff.1").read_text("utf-8")
    return page.replace("VERSION", version, 1)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)


def _say_values(action: argparse.Action) -> None:
    """The values of an option, if they are a closed list."""
    values = next(
        (_VALUES[name] for name in (*action.option_strings, action.metavar) if name in _VALUES), None
    )
    if values is not None and action.choices is None:
        action.choices = [*values()]


def _apis() -> Iterable[str]:
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.layout.spoken import api_names

    return api_names(load_catalog())


def _subjects() -> Iterable[str]:
    from kwsniff.cli.explain_names import KINDS, LISTS

    kinds = [*KINDS, "error", "release", "apis", "errors", "schemas", "releases", *LISTS]
    return [*_apis(), *_findings(), *_tables(), *_errors(), *kinds]


def _errors() -> Iterable[str]:
    from kwsniff.layout.catalog import load_catalog

    return ["any", *(error.name for error in load_catalog().errors.values())]


def _releases() -> Iterable[str]:
    from kwsniff.layout.catalog import load_catalog

    return load_catalog().releases.names


def _statuses() -> Iterable[str]:
    from kwsniff.core.declared import ENUMS

    return [word for word in ENUMS["status"] if word]


def _tables() -> Iterable[str]:
    from kwsniff.tables.schema import TABLES

    return TABLES


def _findings() -> Iterable[str]:
    from kwsniff.findings.rule import load_rules

    return [rule.name for rule in load_rules()]


def _questions() -> Iterable[str]:
    from kwsniff.findings.sql import load_questions

    return load_questions()


_VALUES: Final[dict[object, Callable[[], Iterable[str]]]] = {
    "--api": _apis, "--error": _errors, "--status": _statuses, "--table": _tables, "--finding": _findings,
    "--question": _questions, "RELEASE": _releases, "NAME": _subjects,
}  # fmt: skip
