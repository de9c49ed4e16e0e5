"""What a rule is, and all rules: the files in `rules/` hold figures, query and texts side by side."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

SEVERITIES: Final = ("problem", "warning", "info")
"""Worst first."""
CONFIDENCES: Final = ("certain", "likely", "possible")
BLAMES: Final = ("broker", "network", "client", "follower", "configuration", "capture")
SUBJECT_KINDS: Final = (
    "broker", "client", "group", "topic", "partition", "transactional_id", "connection", "capture",
)  # fmt: skip

GROUPS: Final = (
    "brokers",
    "opening",
    "network",
    "clients",
    "groups",
    "transactions",
    "refusals",
    "doors",
    "protocol",
    "capture",
)
"""The files of rules, in the order in which findings of equal weight are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: when `query` gives rows, each is a finding.

    `query` is SQL over the views of views.sql; `$name` is a figure of `floors`. Its columns are
    `subject`, `first_time`, `last_time`, `value`, `expected`, `calls`, `time_ns` (time those calls took),
    `call_ids`, `frames`; `client`, `broker`, `topic`, `group_id` say whom it concerns; `severity`,
    `confidence`, `blames` overrule the rule's own; whatever else it has, `text`, `advice` and `command` may
    name in braces, as they may name the floors.
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
    says: str
    """The rule in words; figures of `floors` in braces."""
    query: str
    text: str
    advice: str
    command: str
    floors: Mapping[str, float] = field(default_factory=dict)
    explained_by: tuple[str, ...] = ()
    """Findings that this one may follow from, when they concern the same client, broker, topic or group."""
    group: str = ""


def _rule(group: str, fields: Mapping[str, Any]) -> Rule:
    known = dict(fields)
    known["when"] = tuple(known["when"])
    known["explained_by"] = tuple(known.get("explained_by", ()))
    rule = Rule(group=group, **known)
    for value, allowed in (
        (rule.severity, SEVERITIES), (rule.confidence, CONFIDENCES), (rule.blames, BLAMES),
        (rule.subject_kind, SUBJECT_KINDS),
    ):  # fmt: skip
        if value not in allowed:
            raise ValueError(f"rule {rule.name}: {value!r} is none of {', '.join(allowed)}")
    return rule


def read_rules(group: str) -> tuple[Rule, ...]:
    """The rules of one file, in its order. Raises ValueError for a wrong one."""
    return tuple(_rule(group, each) for each in tomllib.loads(_text_of(group))["rule"])


_RULES: Final = Path(__file__).with_name("rules")
_HEAD: Final = "[[rule]]\n"
_OF_GATES: Final = (_HEAD.strip(), "name =", "when =")


@dataclass(frozen=True, slots=True)
class Gate:
    """What decides whether a rule is read and asked at all."""

    name: str
    group: str
    when: tuple[Mapping[str, Any], ...]


@cache
def load_gates() -> tuple[Gate, ...]:
    """The gates of all rules, in their order.

    Only these lines of the files are read as TOML: most captures need no more, and the whole takes longer
    than finding that nothing is wrong.
    """
    gates: list[Gate] = []
    for group in GROUPS:
        lines = [line for line in _text_of(group).splitlines() if line.startswith(_OF_GATES)]
        found = tomllib.loads("\n".join(lines))["rule"]
        gates += [Gate(each["name"], group, tuple(each["when"])) for each in found]
    return tuple(gates)


def rules_behind(gates: Sequence[Gate]) -> list[Rule]:
    """The rules of these gates, in their order."""
    rules = []
    for group in dict.fromkeys(gate.group for gate in gates):
        names = {f'name = "{gate.name}"' for gate in gates if gate.group == group}
        # Only these are read as TOML, for the same reason.
        texts = [text for text in _text_of(group).split(_HEAD)[1:] if text.split("\n", 1)[0] in names]
        rules += [_rule(group, each) for each in tomllib.loads(_HEAD + _HEAD.join(texts))["rule"]]
    return rules


def _text_of(group: str) -> str:
    return (_RULES / f"{group}.toml").read_text("utf-8")


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
