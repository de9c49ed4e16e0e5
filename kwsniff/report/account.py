"""The account: how many calls and connections worked, and which findings explain the others."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kwsniff.report.section import Cell, Section, Table, number, text

_SIDES: Final = {"account": ("call", "calls"), "connections": ("connection", "connections")}
_KINDS: Final = ("routine", "explained")


def make_account(accounts: Mapping[str, Any]) -> Section | None:
    """The section of both accounts (finding_calls.py); None where there is none, or nothing to count."""
    known = {side: account for side, account in accounts.items() if account and account[_SIDES[side][1]]}
    if not known:
        return None
    return Section(
        name="account",
        title="Account",
        says=[_line(known[side], *names) for side, names in _SIDES.items() if side in known],
        tables=[_table(known)] if any(_parts(each) for each in known.values()) else [],
    )


def _line(account: Mapping[str, Any], one: str, many: str) -> str:
    total = account[many]
    counts = [(account["fine"], "fine"), *((sum(account[kind].values()), kind) for kind in _KINDS)]
    parts = [f"{count:,} {kind}" for count, kind in counts if count or kind == "fine"]
    if left := account["unexplained"]:
        parts.append(f"{left:,} harmed without an explanation")
    return f"{total:,} {one if total == 1 else many}: {', '.join(parts)}."


def _table(known: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row per reason, those of calls first."""
    parts = {side: _parts(account) for side, account in known.items()}
    named = dict.fromkeys(part for counts in parts.values() for part in counts)
    return Table(
        caption="Calls and connections that are not simply fine",
        columns=("kind", "reason or finding", "calls", "connections"),
        rows=[[text(kind), text(name), *_counts(parts, (kind, name))] for kind, name in named],
    )


def _parts(account: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    counts = {(kind, name): count for kind in reversed(_KINDS) for name, count in account[kind].items()}
    left = {("unexplained", ""): account["unexplained"]} if account["unexplained"] else {}
    return left | counts


def _counts(parts: Mapping[str, Mapping[tuple[str, str], int]], part: tuple[str, str]) -> Iterator[Cell]:
    for side in _SIDES:
        yield number(parts.get(side, {}).get(part))
