"""The table with one row per finding: findings. Its rules stand in kwsniff/findings/rules."""

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
    row="one thing that is wrong, wasteful, or worth knowing",
    doc="What `kwsniff why` says, worst first: who has to act, and the calls that prove it. "
    "[findings](../findings.md) has every rule with its figures.",
    columns=(
        _column("finding", "string", "Its name, one of those in findings.md."),
        _column("severity", "string", "How bad it is.", enum="severity"),
        _column("confidence", "string", "How sure it is.", enum="confidence"),
        _column("blames", "string", "Who has to act.", enum="blames"),
        _column("subject_kind", "string", "What it is about.", enum="subject_kind"),
        _column("subject", "string", "Which one."),
        _column("first_time", "time", "When it began.", "its calls and packets", null="none has a time"),
        _column(
            "last_time", "time", "When it was seen last.", "its calls and packets", null="none has a time"
        ),
        _column("value", "double", "What was measured.", "calls and packets", null="nothing is measured"),
        _column(
            "expected", "double", "Against what.", "rules, or other calls", null="nothing to compare with"
        ),
        _column("unit", "string", "In what."),
        _column("calls", "int64", "How many calls are concerned."),
        _column(
            "time_share",
            "double",
            "The time these calls took, as a share of the time that all calls took.",
            "latencies",
            null="no times of calls prove it",
        ),
        _column("call_ids", "integers", "At most 20 calls that prove it, the most telling first."),
        _column("frames", "integers", "At most 20 packets that prove it where no call does."),
        _column("explained_by", "string", "The finding that it follows from.", null="it follows from none"),
        _column("text", "string", "One sentence with the figures."),
        _column("advice", "string", "What to do."),
        _column(
            "command",
            "string",
            "A kwsniff command that shows the proof; CAPTURE and DIR stand for captures and tables.",
        ),
    ),
)
