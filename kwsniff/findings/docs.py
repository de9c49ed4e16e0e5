"""docs/findings.md, generated from the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, Rule, load_rules

_HEAD = """\
# Findings

<!-- Made by `python -m kwsniff.findings.docs > docs/findings.md`: edit the rules, not this page. -->

`kwsniff why capture.pcap`, or `kwsniff why DIR` for a folder of tables, shows problems, worst first, with
their owners and the calls or packets that prove them. `analyze`, `pipeline` and `live` write the same
findings into the table [findings](tables.md#findings), and `analyze` ends its summary with them.

- A **problem** causes harm now. A **warning** is waste or a risk. An **info** explains figures and is
  harmless.
- Exit status of `why`: 0 no problem found, 1 a problem found, 2 error.
- A finding that another one causes names it (`explained_by`). It comes after it, is never more severe, and
  does not decide the exit status alone.
- `why` ends with the limits of the capture. On a healthy capture it also shows how much traffic it
  evaluated.

Every rule is a query over the tables with its own thresholds, in `kwsniff/findings/rules/`. Below a
threshold the rule does not fire.

## Owner

`blames` is the owner of a finding: the party that can fix it. This is not the party that suffers from it.

- `client`: the client program, its code or its settings. It sends too often, too much, too late, to the
  wrong name or to the wrong listener, and the broker behaves correctly. Its settings
  (`fetch.max.wait.ms`, `linger.ms`, `security.protocol`, a topic's name, a password) are the client's.
- `broker`: a server that is slow, stalled, gone, or closes connections instead of responding. A
  missing replica is a broker, too.
- `follower`: a server that responds, but delays its leader as a replica.
- `network`: the path between client and broker, including its distance.
- `configuration`: client and broker both work as configured, and a setting must change: quotas, permissions,
  connection limits, idle timeouts, advertised addresses, SASL mechanisms, ids that two members share, the
  number of partitions, a topic's codec. The operators of the cluster or of the deployment decide
  on which side.
- `capture`: the capture itself is incomplete. The finding does not concern the traffic.

Rules distinguish between these owners if they can. A broker that closes the connection on a request version
that it no longer supports blames the client. A request that timed out while it waited for followers blames
the followers. Too few replicas blame the broker that is no longer in the metadata, or the follower that is
behind.

"""

_TITLES = {
    "brokers": "Brokers",
    "opening": "Opening connections",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "transactions": "Transactions",
    "refusals": "Errors by rule",
    "doors": "Wrong listener",
    "protocol": "Protocol",
    "capture": "Capture",
}


def findings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {_TITLES[group]}\n\n| finding | severity | owner | rule | advice |\n")
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
