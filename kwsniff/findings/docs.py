"""docs/findings.md, generated from the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, UPGRADE, Rule, read_rules

_HEAD = """\
# Findings

<!-- Made by `python -m kwsniff.findings.docs > docs/findings.md`: edit the rules, not this page. -->

`kwsniff why capture.pcap`, or `kwsniff why DIR` for a folder of tables, says what is wrong, worst first,
with owner and proof. `analyze`, `pipeline` and `live` write the same into the table
[findings](tables/findings.md). [Accuracy](accuracy.md) says how often it is right.

- A **problem** is harm now, a **warning** waste or a risk, an **info** explains figures.
- `certain`: proven by the packets. `likely`: one assumption that the packets cannot confirm. `possible`:
  one of several explanations.
- A finding that follows from another one says so (`explained_by`). It comes after it, is never more severe,
  and does not decide the exit status alone.
- Exit status of `why`: 0 no problem, 1 a problem, 2 it could not run.

Every rule is a query over the tables, in `kwsniff/findings/rules/`. Its figures are minimums: below them it
does not fire. `kwsniff explain FINDING` prints what this page says of a finding.

## Owner

`blames` is the owner: who has to do something before it ends.

- `client`: the calling program, its code or its settings (`fetch.max.wait.ms`, `linger.ms`,
  `security.protocol`, a topic's name, a password).
- `broker`: a server that is slow, stalled, gone, or closes instead of answering; also a replica that is gone.
- `follower`: a server that answers, and delays its leader as a replica.
- `network`: what is between the two, distance included.
- `configuration`: settings of cluster or deployment have to change: quotas, rights, limits of connections
  and idleness, advertised addresses, mechanisms, ids that two members share, number of partitions, a
  topic's codec.
- `capture`: the person who took the capture. Nothing is said about the traffic.
- `unknown`: the tables show harm, and no rule explains it.

Where a rule can tell two owners apart, it does: a broker that closes on a request too old for it blames the
client.

"""

_TITLES = {
    "brokers": "Brokers",
    "opening": "Opening connections",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "progress": "Progress",
    "transactions": "Transactions",
    "refusals": "Refused requests",
    "doors": "Wrong listener",
    "protocol": "Protocol",
    "capture": "Capture",
    "rest": "The rest",
    UPGRADE: "Upgrade",
}


def findings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for group in (*GROUPS, UPGRADE):
        rules = read_rules(group)
        parts.append(f"## {_TITLES[group]}\n\n| finding | severity | owner |\n|---|---|---|\n")
        parts += [f"| [`{rule.name}`](#{rule.name}) | {rule.severity} | {rule.blames} |\n" for rule in rules]
        parts += [_section(rule) for rule in rules]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _section(rule: Rule) -> str:
    said = [
        ("Why it matters", rule.matters),
        ("When it is silent", rule.fill(rule.silent)),
        ("May be mistaken for", _alike(rule)),
        ("Settings", ", ".join(f"`{name}`{program}" for name, program in map(_split_setting, rule.settings))),
        ("What to do", rule.plain_advice),
        ("May follow from", ", ".join(f"[{cause}](#{cause})" for cause in rule.explained_by)),
    ]
    listed = "".join(f"- **{label}**: {text}\n" for label, text in said if text)
    timeline = "".join(f"    {line}\n" for line in rule.timeline.splitlines())
    return (
        f"\n### {rule.name}\n\n{rule.fill(rule.does)}\n\n"
        f"{rule.severity.capitalize()}, {rule.confidence}, owner: {rule.blames}.\n\n{timeline}\n{listed}"
    )


def _alike(rule: Rule) -> str:
    return " ".join(f"[{name}](#{name}): {text}" for name, text in rule.mistaken_for.items())


def _split_setting(setting: str) -> tuple[str, str]:
    """The name of a setting, and the program that has it."""
    name, space, program = setting.partition(" (")
    return name, f"{space}{program}"


if __name__ == "__main__":
    sys.stdout.write(findings_page())
