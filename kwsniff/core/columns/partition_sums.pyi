from kwsniff.core.columns.numbers import Array, WholeColumn

SEEN: int
WRITTEN: int

def place_rows(
    columns: tuple[WholeColumn, ...], wanted: int, width: int, places: Array, widths: Array, used: Array
) -> int:
    """The place of each row that counts, and how many have no topic; see the source."""

def sum_places(
    places: Array,
    numbers: Array,
    columns: tuple[WholeColumn, ...],
    sums: Array,
    keys: Array,
    ids: Array,
    writers: Array,
) -> None:
    """Adds up rows by the number of their place; see the source."""

def follow_ends(places: Array, numbers: Array, columns: tuple[WholeColumn, ...], ends: Array) -> int:
    """How many rows begin below the end of earlier ones; see the source."""

def sum_by_code(columns: tuple[WholeColumn, ...], first_wanted: int, second_wanted: int, sums: Array) -> None:
    """Adds up numbers by code where two other columns have what is wanted, and counts; see the source."""
