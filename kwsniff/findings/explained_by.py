"""`explained_by`: findings that follow from others, and what that does to their severity and weight."""

from collections.abc import Mapping, Sequence

from kwsniff.findings.finding import Finding
from kwsniff.findings.rule import SEVERITIES, Rule


def explain_consequences(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> None:
    """Names the causes, then gives causes and consequences the severity and the harm of each other."""
    _name_causes(findings, rules)
    for finding in findings:
        _rank_below_cause(finding)
        _pass_harm_on(finding)


def _name_causes(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> None:
    """Sets the cause of each consequence: the first of its rule's list that concerns the same party.

    A finding of severity info is never a cause.
    """
    for finding in findings:
        for cause in rules[finding.finding].explained_by if finding.may_follow else ():
            found = [each for each in findings if each.finding == cause and _is_related(each, finding)]
            if found:
                finding.explained_by = cause
                finding.cause = min(found, key=lambda each: SEVERITIES.index(each.severity))
                break


def _rank_below_cause(finding: Finding) -> str:
    """Lowers a consequence to the severity of its cause, so that it never comes first. Returns it."""
    if finding.cause is not None:
        worst = _rank_below_cause(finding.cause)
        finding.severity = max(finding.severity, worst, key=SEVERITIES.index)
    return finding.severity


def _pass_harm_on(finding: Finding) -> None:
    """A cause weighs at least as much as what follows from it. Both may list the same calls."""
    cause = finding.cause
    while cause is not None:
        cause.harmed = max(cause.harmed, finding.harmed)
        cause = cause.cause


def _is_related(cause: Finding, consequence: Finding) -> bool:
    if cause.severity == "info":
        return False
    shared = cause.parties.keys() & consequence.parties.keys()
    if shared and not any(cause.parties[name] == consequence.parties[name] for name in shared):
        return False
    if cause.first_time and consequence.last_time and cause.first_time > consequence.last_time:
        return False
    return cause is not consequence


def count_causes(finding: Finding) -> int:
    """How many causes it follows from, one behind the other."""
    return 0 if finding.cause is None else 1 + count_causes(finding.cause)
