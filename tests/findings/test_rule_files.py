"""Every rule is a file with all parts of its head; docs and `kwsniff explain` are made of these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kwsniff.findings.rule import GROUPS, UPGRADE, Rule, load_rules, read_rules
from kwsniff.layout.catalog import load_catalog
from tests.house.tree import ROOT

FOLDER = ROOT / "kwsniff" / "findings" / "rules"
RULES = (*load_rules(), *read_rules(UPGRADE))
MOST_WORDS = 25
PROGRAMS = (
    "librdkafka", "franz-go", "sarama", "Linux", "HAProxy", "nginx", "tcpdump", "kwsniff", "quota",
    "environment",
)  # fmt: skip
NOT_PUBLIC = ("sasl.jaas.config", "super.users", "allow.everyone.if.no.acl.found")
"""Kafka's settings that the list of public ones does not have: a password, and those of its authorizer."""
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", text)


def test_each_file_is_a_rule_of_the_group_of_its_folder() -> None:
    files = {(path.parent.name, path.stem) for path in FOLDER.rglob("*.toml")}
    assert files == {(rule.group, rule.name) for rule in RULES}
    assert {path.name for path in FOLDER.iterdir()} == {*GROUPS, UPGRADE}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.toml")), ids=lambda path: path.stem)
def test_the_first_line_of_a_file_is_the_gate(path: Path) -> None:
    """Gates are read without the rest: it must be one line, within the bytes that are read."""
    first = path.read_bytes().partition(b"\n")[0]
    assert first.startswith(b"when = [")
    assert first.endswith(b"]")
    assert len(first) < 512


@every_rule
def test_a_rule_has_all_parts(rule: Rule) -> None:
    parts = rule.does, rule.matters, rule.silent, rule.mistaken_for, rule.timeline, rule.settings
    assert all(parts)
    assert rule.does.startswith("Fires ")
    assert "{" not in rule.fill(rule.does) + rule.fill(rule.silent) + rule.matters


@every_rule
def test_sentences_of_a_head_are_short(rule: Rule) -> None:
    texts = rule.fill(rule.does), rule.matters, rule.fill(rule.silent), *rule.mistaken_for.values()
    long = [one for text in texts for one in _sentences(text) if len(one.split()) > MOST_WORDS]
    assert long == []
    assert all(text.endswith(".") for text in texts)


@every_rule
def test_what_a_finding_may_be_mistaken_for_is_another_finding(rule: Rule) -> None:
    names = {each.name for each in RULES}
    assert set(rule.mistaken_for) <= names - {rule.name}
    named = set(re.findall(r"\((\w+_\w+)\)", rule.silent))
    assert named <= names


@every_rule
def test_settings_are_those_of_kafka_or_of_a_named_program(rule: Rule) -> None:
    settings = load_catalog().settings
    for setting in rule.settings:
        name, space, program = setting.partition(" (")
        if space:
            assert program.removesuffix(")") in PROGRAMS, setting
            assert program != "librdkafka)" or re.fullmatch(r"[a-z]+(\.[a-z]+)+", name), setting
        else:
            assert name in NOT_PUBLIC or settings.is_public(name), setting


@every_rule
def test_a_timeline_fits_the_screen(rule: Rule) -> None:
    lines = rule.timeline.splitlines()
    assert all(len(line) <= 76 and line.strip() for line in lines)
    assert not any("\t" in line for line in lines)
