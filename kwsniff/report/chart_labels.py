"""Labels in charts."""

from collections.abc import Iterable

from kwsniff.texts import clean


def label(value: object, most: int = 28) -> str:
    """A text for a chart, shortened in its middle."""
    shown = clean("" if value is None else str(value))
    if len(shown) > most:
        head = (most - 1) // 2
        shown = f"{shown[:head]}…{shown[head + 1 - most :]}"
    return shown


def labels(values: Iterable[str], most: int = 28) -> dict[str, str]:
    """A unique label for each value."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        if value in given:
            continue
        name = first = label(value, most)
        count = 1
        while name in taken:
            count += 1
            name = f"{first} ({count})"
        taken.add(name)
        given[value] = name
    return given
