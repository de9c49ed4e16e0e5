from kwsniff.core.columns.numbers import Array, WholeColumn

def follow_reads(
    columns: tuple[WholeColumn, ...], topics: Array, topic_ids: Array, table: Array, sums: Array, seed: int
) -> None:
    """Follows the offsets of readers; see the source."""

def add_readers(readers: Array, table: Array, sums: Array, seed: int) -> None:
    """Puts readers with their offsets into a table; see the source."""
