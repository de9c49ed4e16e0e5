from kwsniff.core.columns.numbers import Array, WholeColumn

def sum_causes(
    columns: tuple[WholeColumn, ...],
    words: Array,
    causes: Array,
    starts: Array,
    lengths: Array,
    codes: Array,
    sums: Array,
    topics: Array,
) -> None:
    """Adds up the time of calls by cause, of groups and topics; see the source."""
