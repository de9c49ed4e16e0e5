"""One conversation in captures of several places, under the same addresses and ports.

Sequence numbers prove it: the connections have numbers in common in every direction that both show. The place
counts whose captures have more calls in all, so that times come from one clock where possible; another place
counts where it saw more than a tenth more calls of the conversation.

    at the client   |======= calls =======|
    at the broker         |== the same ==|       its twin, although it began later
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers

Row = dict[str, Any]
_NUMBERS = 1 << 32


def count_calls(batches: Iterable[pa.RecordBatch], places: Mapping[str, int]) -> Counter[int]:
    """Place -> calls of all its captures. `batches`: of connections, with `capture` and `calls`."""
    counts: Counter[int] = Counter()
    for batch in batches:
        calls = whole_numbers(batch["calls"], null=0).tolist()
        for capture, number in zip(batch["capture"].to_pylist(), calls, strict=True):
            counts[places.get(capture, 0)] += number
    return counts


def pair_sightings(
    rows: Sequence[Row], places: Mapping[str, int], calls: Mapping[int, int]
) -> Iterator[tuple[Row, Row]]:
    """Pairs of the connection that counts and another one of the same conversation.

    `rows`: of connections with the same addresses and ports; `places`: of captures; `calls`: of places.
    """
    for conversation in _conversations(rows, places):
        seen: Counter[int] = Counter()
        for row in conversation:
            seen[_place(row, places)] += row["calls"]
        best = max(seen, key=lambda place: (calls.get(place, 0), -place))
        most = max(seen, key=lambda place: (seen[place], -place))
        if 10 * seen[most] > 11 * seen[best]:
            best = most
        counting = [row for row in conversation if _place(row, places) == best]
        for row in conversation:
            if _place(row, places) != best:
                first = next((each for each in counting if _is_same(each, row)), counting[0])
                yield first, row


def _place(row: Row, places: Mapping[str, int]) -> int:
    return places.get(row["capture"], 0)


def _conversations(rows: Sequence[Row], places: Mapping[str, int]) -> list[list[Row]]:
    """Rows that follow from each other, where they are of more than one place."""
    groups: list[list[Row]] = []
    for row in rows:
        same = [
            group
            for group in groups
            if any(_place(each, places) != _place(row, places) and _is_same(each, row) for each in group)
        ]
        groups = [group for group in groups if group not in same]
        groups.append([*(each for group in same for each in group), row])
    return [group for group in groups if len({_place(row, places) for row in group}) > 1]


def _is_same(a: Row, b: Row) -> bool:
    sides = [_have_common(a, b, side) for side in ("client", "broker")]
    return True in sides and False not in sides


def _have_common(a: Row, b: Row, side: str) -> bool | None:
    """Whether two connections have numbers of this direction in common; None where one of them has none."""
    first, other = a[f"{side}_isn"], b[f"{side}_isn"]
    if first is None or other is None:
        return None
    ahead: int = (other - first + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
    return -_length(b, side) <= ahead <= _length(a, side)


def _length(row: Row, side: str) -> int:
    length: int = row[f"{side}_bytes"] + row[f"{side}_missing_bytes"]
    return length
