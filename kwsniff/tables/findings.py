"""The tables of findings: findings and finding_calls. kwsniff/findings/rules has the rules."""

from kwsniff.tables.column import Column, TableSchema, TypeWord


def _column(
    name: str,
    type_: TypeWord,
    doc: str,
    source: str = "rules",
    *,
    null: str | None = None,
    enum: str | None = None,
) -> Column:
    return Column(name=name, type=type_, doc=doc, source=source, null=null, enum=enum)


FINDINGS = TableSchema(
    name="findings",
    row="one finding: a problem, a waste or risk, or a fact worth knowing",
    doc="The findings of `kwsniff why`, worst first, with their owners and the calls that prove them. "
    "[findings](../findings.md) has every rule with its figures.",
    columns=(
        _column("finding_id", "int64", "Number of the finding, unique in its run; finding_calls has it."),
        _column("finding", "string", "Name of the finding; `kwsniff explain` describes it."),
        _column("severity", "string", "Severity.", enum="severity"),
        _column("confidence", "string", "Confidence.", enum="confidence"),
        _column("blames", "string", "Owner: who can fix it.", enum="blames"),
        _column("subject_kind", "string", "Kind of the subject.", enum="subject_kind"),
        _column("subject", "string", "Which one."),
        _column("first_time", "time", "Start time.", "its calls and packets", null="they have no times"),
        _column(
            "last_time", "time", "Last time it was seen.", "its calls and packets", null="they have no times"
        ),
        _column("value", "double", "Measured value.", "calls and packets", null="no measured value"),
        _column("expected", "double", "Against what.", "rules, or other calls", null="no reference value"),
        _column("unit", "string", "In what."),
        _column("calls", "int64", "Number of affected calls."),
        _column(
            "time_share",
            "double",
            "Latency of these calls, as a share of total call latency.",
            "latencies",
            null="call latency does not prove it",
        ),
        _column("call_ids", "integers", "At most 20 calls that prove it, the strongest proof first."),
        _column("frames", "integers", "At most 20 packets that prove it, if no call does."),
        _column(
            "explained_by",
            "string",
            "The finding that causes this one.",
            null="no known cause among the findings",
        ),
        _column("text", "string", "A sentence with the figures."),
        _column("advice", "string", "Advice."),
        _column(
            "command",
            "string",
            "A kwsniff command that shows the proof; replace CAPTURE and DIR by captures and tables.",
        ),
    ),
)

FINDING_CALLS = TableSchema(
    name="finding_calls",
    row="a call or connection that a finding explains",
    doc="Every call and every connection that a finding explains; `findings.call_ids` has at most 20. "
    "Several findings may explain the same one.",
    columns=(
        _column("finding_id", "int64", "The finding, in findings.", "findings"),
        _column("call_id", "int64", "The call, in api_calls.", "api_calls", null="a connection, not a call"),
        _column("connection_id", "int64", "The connection, or the call's, in connections.", "connections"),
    ),
)
