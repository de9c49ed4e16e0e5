from kwsniff.core.columns.numbers import Array, WholeColumn

class Codes:
    """The meaning of texts, by their codes, null at the end; see the source."""

    def __init__(
        self,
        named: Array,
        placed: Array,
        of_clients: Array,
        kinds: Array,
        unanswered: Array,
        answered: int,
    ) -> None: ...

def sum_calls(
    columns: tuple[WholeColumn, ...],
    codes: Codes,
    marked_kind: int,
    fetch_kind: int,
    tick: int,
    sums: Array,
    spans: Array,
    keys: Array,
    ids: Array,
    latest: Array,
    marks: Array,
    reads: Array,
) -> tuple[int, int]:
    """Adds up calls by client and kind, and marks ticks of time; see the source."""
