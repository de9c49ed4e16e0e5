"""docs/findings.md, made of the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, Rule, load_rules

_HEAD = """\
# Findings

<!-- Made by `python -m kwsniff.findings.docs > docs/findings.md`: edit the rules, not this page. -->

`kwsniff why capture.pcap`, or `kwsniff why DIR` for a folder of tables, says what is wrong, worst first:
who has to act, and the calls or packets that prove it. `analyze`, `pipeline` and `live` write the same
into the table [findings](tables/findings.md), and `analyze` begins its summary with it.

- A **problem** harms somebody now, a **warning** is waste or a risk, an **info** explains figures and
  harms nobody.
- Exit status of `why`: 0 nothing is a problem, 1 a finding is a problem, 2 it could not run.
- A finding that follows from another says so (`explained_by`), and stands behind it.
- `why` ends with what the capture cannot tell. On a healthy capture it says how much traffic that
  judgement stands on.

Every rule is a query over the tables with figures of its own, in `kwsniff/findings/rules/`. A figure is a
floor: below it nothing is said.

## Who has to act

`blames` is whoever has to do something before it ends, not who suffers, and not who is to be scolded.

- `client`: the program that calls, its code or its own settings. Whoever sends too often, too much, too late,
  to the wrong name or through the wrong door: the other side does what it is there for. Its settings
  (`fetch.max.wait.ms`, `linger.ms`, `security.protocol`, a topic's name, a password) are the client's.
- `broker`: a server that is slow, stands still, is gone, or closes in place of answering. A replica that is
  gone is a broker, too.
- `follower`: a server that is there and answers, and holds up its leader as a replica.
- `network`: what lies between the two, also distance.
- `configuration`: nobody does anything wrong, and what was agreed has to change: quotas, rights, limits of
  connections and of their idleness, the addresses that brokers advertise, the mechanisms they offer, ids that
  two members share, partitions for more members, a topic's codec. Whoever looks after the cluster, or after
  the deployment as a whole, decides which side.
- `capture`: whoever took it. Nothing is said of the traffic.

Where a rule can tell two of these apart it does: a broker that hangs up on a request too old for it blames
the client, a request that timed out while it waited for followers blames these, too few replicas blame the
broker that is no longer named, or the follower that is behind.

"""

_TITLES = {
    "brokers": "Brokers",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "transactions": "Transactions",
    "refusals": "Refused by rule",
    "doors": "Wrong door",
    "protocol": "Protocol",
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
