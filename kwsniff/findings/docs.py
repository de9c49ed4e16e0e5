"""docs/findings.md, generated from the rules. `python -m kwsniff.findings.docs > docs/findings.md`"""

import sys

from kwsniff.findings.rule import GROUPS, UPGRADE, Rule, read_rules

_HEAD = """\
# Findings

<!-- Made by `python -m kwsniff.findings.docs > docs/findings.md` -->

`kwsniff why capture.pcap`, or `kwsniff why DIR` for a folder of tables, says what is wrong, worst first,
with owner and proof. `analyze`, `pipeline` and `live` write the same into the table
[findings](tables/findings.md). [Accuracy](accuracy.md) says how often it is right.

`kwsniff explain FINDING` prints more.
[Troubleshooting](troubleshooting.md) has examples. This page has, for every rule:

- Severity: a **problem** is harm now, a **warning** waste or a risk, an **info** explains figures.
- Confidence: `certain`, the packets prove it; `likely`, one assumption that they cannot confirm; `possible`,
  one of several explanations.
- **Owner**: who can end it.
- When it fires, and when it is silent. Figures are minimums. The rules: `kwsniff/findings/rules/`.

Severity leads; within it, findings that explain the most harm come first. A finding with a cause among the
findings names it (`explained_by`). It comes after the cause, which weighs as much, is never more severe, and
does not decide the exit status alone.

## Owner

- `client`: the calling program, its code or its settings (`fetch.max.wait.ms`, `linger.ms`,
  `security.protocol`, a topic's name, a password).
- `broker`: a server that is slow, stalled, gone, or closes instead of answering; also a replica that is gone.
- `follower`: a server that answers, and delays its leader as a replica.
- `network`: what is between the two, distance included.
- `configuration`: settings of cluster or deployment: quotas, rights, limits of connections and idleness,
  advertised addresses, mechanisms, ids that two members share, number of partitions, a topic's codec.
- `capture`: who took the capture.
- `unknown`: no rule explains the harm.

## Account

`why` counts every call and connection once (`account`, `connections` in `why --json`).

- `fine`: it worked.
- `routine`: normal operation, by name: an error that passed (`member_id_required`, `rebalance`,
  `version_fallback`, `leader_moved`, `coordinator_moved`, `topic_being_created`, `topic_exists`,
  `concurrent_transactions`, `fetch_session_renewed`, `normal_at_server`, others: `passing_error`), a call
  that the client left when it closed (`closed_while_waiting`), or that the end of the capture cut off
  (`in_flight_at_end`), `not_captured`, `between_brokers`, `other_protocol`; a connection that opened soon
  after (`opened_again`), or whose client worked with another broker (`other_broker_used`).
- `explained`: a problem or warning lists it ([finding_calls](tables/finding_calls.md)), or it was harmed,
  and a problem or warning concerns its client or broker at that time, give or take 10 s. What several
  findings explain counts under the first.
- `unexplained`: it was harmed, and no other finding explains it.

The column `harm` says what [a call](tables/api_calls.md#call_harm) or
[a connection](tables/connections.md#connection_harm) suffered. `late` needs 20 calls of the same API, client
and broker, and leaves out deliberate waits; it does not see delays that most calls have. A call has one word:
no response before an error, an error before `late`, and these before `stuck` and `repeated`. Fetches are
`stuck` or `repeated` where [consumer_stuck](#consumer_stuck) says so of the reader. A Produce is `repeated`
if an earlier, harmed call may have stored its batch: with a producer id from the second retry on, because
the broker drops one copy; without an id, the batch is known by size, count and timestamps. Batches that
were answered do not count.
The column is null without findings: with `--where` or `--table` alone, in streams, data sources and
`kwsniff.calls`.
`live` fills it when it closes a file. Definitions: `kwsniff/findings/shared_views/harm.sql`.

"""

_TITLES = {
    "brokers": "Brokers",
    "connections": "Connections",
    "network": "Network",
    "clients": "Clients",
    "groups": "Groups",
    "records": "Records",
    "cluster": "Cluster",
    "transactions": "Transactions",
    "errors": "Error responses",
    "listeners": "Listeners",
    "protocol": "Protocol",
    "capture": "Capture",
    "unexplained": "Unexplained",
    UPGRADE: "Upgrade",
}


def findings_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for group in (*GROUPS, UPGRADE):
        rules = read_rules(group)
        names = ", ".join(f"[{rule.name}](#{rule.name})" for rule in rules)
        parts.append(f"## {_TITLES[group]}\n\n{names}\n")
        parts += [_section(rule) for rule in rules]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _section(rule: Rule) -> str:
    similar = ", ".join(f"[{name}](#{name})" for name in rule.mistaken_for)
    return (
        f"\n### {rule.name}\n\n{rule.severity.capitalize()}, {rule.confidence}, {rule.blames}.\n\n"
        f"{rule.fill(rule.does)}\n\n{rule.fill(rule.silent)}\n\n**Similar**: {similar}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(findings_page())
