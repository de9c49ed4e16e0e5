"""What a rule is, and all rules: one file each, `rules/GROUP/NAME.toml`, with figures, query and texts."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from kwsniff.texts import fill

SEVERITIES: Final = ("problem", "warning", "info")
"""Worst first."""
CONFIDENCES: Final = ("certain", "likely", "possible")
BLAMES: Final = ("broker", "network", "client", "follower", "configuration", "capture", "unknown")
"""`unknown`: harm that no other rule explains."""
SUBJECT_KINDS: Final = (
    "broker", "client", "group", "topic", "partition", "transactional_id", "connection", "capture",
)  # fmt: skip

GROUPS: Final = (
    "brokers",
    "connections",
    "network",
    "clients",
    "groups",
    "records",
    "cluster",
    "transactions",
    "errors",
    "listeners",
    "protocol",
    "capture",
    "unexplained",
)
"""The folders of rules, in the order of the docs. `kwsniff upgrade` has one of its own."""

LAST: Final = GROUPS[-1]
"""The folder of the rules that read what the others explain, in `finding_entry`."""

MOST_PROOFS: Final = 20
"""Calls, or packets, that a finding names at most."""

UPGRADE: Final = "upgrade"
"""The folder of the rules that only `kwsniff upgrade` evaluates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: when `query` gives rows, each is a finding.

    `query` is SQL over shared_views/*.sql and the macros of api_purposes.py; `$name` is a figure of
    `floors`. Its columns are `subject`, `first_time`, `last_time`, `value`, `expected`, `calls`, `time_ns`
    (time those calls took), `call_ids`, `frames`; `client`, `broker`, `topic`, `group_id` say whom it
    concerns; `severity`, `confidence`, `blames` overrule the rule's own; of a row with `may_follow` false no
    finding of `explained_by` is the cause; whatever else it has, `text`, `advice` and `command` may name in
    braces, as they may name the floors.
    """

    name: str
    severity: str
    confidence: str
    blames: str
    subject_kind: str
    unit: str
    when: tuple[Mapping[str, Any], ...]
    """Floors of figures (figures.py), one set of which must be reached for the rule to be worth asking;
    `errors` are codes one of which was seen, `errors_beside` those that do not count. Without any: always."""
    does: str
    """When it fires, and which calls count; figures of `floors` in braces, as in `silent`."""
    matters: str
    """What it costs the users of the cluster."""
    silent: str
    """What it leaves out, and why."""
    mistaken_for: Mapping[str, str]
    """Finding that looks alike -> what is different there."""
    timeline: str
    """The least that a capture of it shows: seconds, who, what."""
    settings: tuple[str, ...]
    """Names of settings that concern it: Kafka's own, or with the program that has them in parentheses."""
    query: str
    text: str
    advice: str
    command: str
    floors: Mapping[str, float] = field(default_factory=dict)
    all_calls: str = ""
    """Query for `number`, `run_id`, `connection_id` and `call_id` of every call that findings of this rule
    explain, where `call_ids` of the rule's own query has the first only. The table `finding` has the rule's
    findings: `number`, `subject`, `client`, `broker`, `first_time`, `last_time`, `expected`. Parameters are
    of `floors`."""
    explained_by: tuple[str, ...] = ()
    """Findings that this one may follow from, when they concern the same client, broker, topic or group."""
    group: str = ""

    def fill(self, text: str) -> str:
        """A part of its head with the figures in it."""
        return fill(text, self.floors)

    @property
    def plain_advice(self) -> str:
        """The advice where it does not depend on what was found, else nothing."""
        return "" if "{" in self.advice else self.advice


def _rule(group: str, name: str, fields: Mapping[str, Any]) -> Rule:
    known = dict(fields)
    for listed in ("when", "explained_by", "settings"):
        known[listed] = tuple(known.get(listed, ()))
    known["timeline"] = known["timeline"].strip("\n")
    rule = Rule(group=group, name=name, **known)
    for value, allowed in (
        (rule.severity, SEVERITIES), (rule.confidence, CONFIDENCES), (rule.blames, BLAMES),
        (rule.subject_kind, SUBJECT_KINDS),
    ):  # fmt: skip
        if value not in allowed:
            raise ValueError(f"rule {rule.name}: {value!r} is none of {', '.join(allowed)}")
    return rule


def read_rules(group: str) -> tuple[Rule, ...]:
    """The rules of one folder, by name. Raises ValueError for a wrong one."""
    return tuple(_read(group, name) for name in _names_in(group))


_RULES: Final = Path(__file__).with_name("rules")
_END: Final = ".toml"
_WHEN: Final = 512
"""Bytes at the beginning of a file that have its first line, `when`."""


class Gate(NamedTuple):
    """What decides whether a rule is read and asked at all."""

    name: str
    group: str
    when: tuple[Mapping[str, Any], ...]


@cache
def load_gates() -> tuple[Gate, ...]:
    """The gates of all rules, in their order.

    Only the first line of each file is read: most captures need no more, and the whole takes longer than
    finding that nothing is wrong.
    """
    places = [(group, name) for group in GROUPS for name in _names_in(group)]
    lines = [f"{group}-{name}.{_first_line(group, name)}" for group, name in places]
    found = tomllib.loads("\n".join(lines))
    return tuple(Gate(name, group, tuple(found[f"{group}-{name}"]["when"])) for group, name in places)


def rules_behind(gates: Sequence[Gate]) -> list[Rule]:
    """The rules of these gates, in their order."""
    return [_read(gate.group, gate.name) for gate in gates]


def _names_in(group: str) -> list[str]:
    return sorted(
        file.removesuffix(_END)
        for file in os.listdir(f"{_RULES}/{group}")  # noqa: PTH208 - a path for each costs more
        if file.endswith(_END)
    )


def _first_line(group: str, name: str) -> str:
    # Without the layers of a file object: there are many files, and every analysis reads them.
    file = os.open(f"{_RULES}/{group}/{name}{_END}", os.O_RDONLY)
    try:
        return os.read(file, _WHEN).partition(b"\n")[0].decode()
    finally:
        os.close(file)


@cache
def _read(group: str, name: str) -> Rule:
    return _rule(group, name, tomllib.loads((_RULES / group / f"{name}{_END}").read_text("utf-8")))


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules, in the order of evaluation and description. Raises ValueError for a wrong one."""
    rules = [rule for group in GROUPS for rule in read_rules(group)]
    names = [rule.name for rule in rules]
    if len(set(names)) != len(names):
        raise ValueError("two rules have the same name")
    for rule in rules:
        for cause in rule.explained_by:
            if cause not in names:
                raise ValueError(f"rule {rule.name} has an unknown rule as a cause: {cause!r}")
    _refuse_circles({rule.name: rule.explained_by for rule in rules})
    return tuple(rules)


def _refuse_circles(causes: Mapping[str, Sequence[str]]) -> None:
    """A consequence must not also be a cause of its cause."""
    left = dict(causes)
    while left:
        ends = [name for name, behind in left.items() if not left.keys() & set(behind)]
        if not ends:
            raise ValueError(f"rules name each other as causes: {', '.join(left)}")
        for name in ends:
            del left[name]
