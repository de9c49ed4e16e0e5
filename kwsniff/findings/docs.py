"""docs/findings.md, generated from the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, Rule, load_rules

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
says nothing.

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

Where a rule can tell two owners apart, it does: a broker that closes on a request too old for it blames the
client.

"""

_TITLES = {
    "brokers": "Brokers",
    "opening": "Opening connections",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "transactions": "Transactions",
    "refusals": "Refused requests",
    "doors": "Wrong listener",
    "protocol": "Protocol",
    "capture": "Capture",
}


def findings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {_TITLES[group]}\n\n| finding | severity | owner | when | what to do |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_row(rule) for rule in load_rules() if rule.group == group]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _row(rule: Rule) -> str:
    says = rule.says.format_map(rule.floors)
    return f"| `{rule.name}` | {rule.severity} | {rule.blames} | {says} | {_plain(rule.advice)} |\n"


def _plain(advice: str) -> str:
    return "" if "{" in advice else advice


if __name__ == "__main__":
    sys.stdout.write(findings_page())
