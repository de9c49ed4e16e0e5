"""docs/findings.md, made of the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, Rule, load_rules

_HEAD = """\
# Findings

<!-- Made by `python -m kwsniff.findings.docs > docs/findings.md`: edit the rules, not this page. -->

`kwsniff why capture.pcap`, or `kwsniff why DIR` for a folder of tables, says what is wrong, worst first:
who has to act, and the calls or packets that prove it. `analyze`, `pipeline` and `live` write the same
into the table [findings](tables.md#findings), and `analyze` begins its summary with it.

- A **problem** harms somebody now, a **warning** is waste or a risk, an **info** explains figures and
  harms nobody.
- Exit status of `why`: 0 nothing is a problem, 1 a finding is a problem, 2 it could not run.
- A finding that follows from another says so (`explained_by`), and stands behind it.
- `why` ends with what the capture cannot tell. On a healthy capture it says how much traffic that
  judgement stands on.

Every rule is a query over the tables with figures of its own, in `kwsniff/findings/rules/`. A figure is a
floor: below it nothing is said.


"""

_TITLES = {
    "brokers": "Brokers",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "transactions": "Transactions",
    "refusals": "Refused by rule",
    "doors": "Wrong door",
    "capture": "The capture",
}


def findings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {_TITLES[group]}\n\n| finding | severity | who has to act | when | what to do |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_row(rule) for rule in load_rules() if rule.group == group]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _row(rule: Rule) -> str:
    says = rule.says.format_map(rule.floors)
    cause = f" May follow from {', '.join(rule.explained_by)}." if rule.explained_by else ""
    return f"| `{rule.name}` | {rule.severity} | {rule.blames} | {says}{cause} | {_plain(rule.advice)} |\n"


def _plain(advice: str) -> str:
    return "" if "{" in advice else advice


if __name__ == "__main__":
    sys.stdout.write(findings_page())
