"""What packets that captures share prove: samples by hand, each bound from both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwsniff.analysis.capture_points import Same, Samples, find_places, samples_of_each

MS = 1_000_000


def samples(packets: dict[int, int], mask: int = 0) -> Samples:
    """Packet -> time in nanoseconds. Even ones go one way, odd ones the other."""
    ordered = sorted(packets)
    return Samples(
        mask, np.array(ordered, np.uint64), np.array([packets[each] for each in ordered], np.int64)
    )


def pair(shared: int, alone: int, behind: int = 0) -> list[Samples]:
    """Two captures of so many packets each, of which they share some."""
    one = {number: 1000 * number for number in range(shared)}
    other = {number: time + behind for number, time in one.items()}
    return [
        samples(one | {1000 + number: number for number in range(alone)}),
        samples(other | {5000 + number: number for number in range(alone)}),
    ]


def same(*given: Samples) -> tuple[Same, ...]:
    return find_places([f"{name}.pcap" for name in "abcdef"[: len(given)]], given).same


@pytest.mark.parametrize(
    ("shared", "alone", "is_proof"),
    [
        (16, 3_000, True),  # whatever else they hold
        (15, 3_000, False),
        (15, 225, True),  # a sixteenth of 240
        (15, 226, False),
        (3, 45, True),
        (3, 46, False),
        (2, 0, False),
    ],
)
def test_sixteen_packets_are_proof_and_three_of_short_captures(
    shared: int, alone: int, is_proof: bool
) -> None:
    found = same(*pair(shared, alone))
    assert bool(found) == is_proof
    for each in found:
        assert (each.common, each.looked_at) == (shared, shared + alone)


@pytest.mark.parametrize(("captures", "kept"), [(0, 0), (1, 0), (2, 4096), (256, 4096), (512, 2048)])
def test_two_captures_keep_samples_and_one_does_not(captures: int, kept: int) -> None:
    assert samples_of_each(captures) == kept


def test_copies_have_the_same_times() -> None:
    (copied,) = same(*pair(20, 5))
    assert (copied.is_copied, copied.behind_ns) == (True, 0)
    (elsewhere,) = same(*pair(20, 5, behind=-7))
    assert not elsewhere.is_copied


def test_the_clock_is_the_middle_of_both_directions() -> None:
    """The other capture's clock is 5 ms behind; the way takes 2 ms there and 2 ms back."""
    one = {number: 100 * MS * number for number in range(20)}
    other = {number: time + (-5 * MS + (2 * MS if number % 2 else -2 * MS)) for number, time in one.items()}
    (found,) = same(samples(one), samples(other))
    assert found.behind_ns == 5 * MS
    (turned,) = same(samples(other), samples(one))
    assert turned.behind_ns == -5 * MS


def test_many_differences_of_time_have_their_median() -> None:
    """One outlier, the first of each direction, is not the clock."""
    one = {number: 100 * MS * number for number in range(20)}
    other = {number: time - (400 * MS if number < 2 else 3 * MS) for number, time in one.items()}
    (found,) = same(samples(one), samples(other))
    assert found.behind_ns == 3 * MS


def test_packets_are_compared_that_both_would_have_kept() -> None:
    """A capture with a mask keeps those whose bits above 33 are 0 there."""
    one = dict.fromkeys(range(20), 0) | {(1 << 33) + number: 0 for number in range(500)}
    (found,) = same(samples(one), samples(dict.fromkeys(range(20), 0), mask=1))
    assert (found.common, found.looked_at) == (20, 20)


def rows(number: int) -> list[Any]:
    return [{"capture": f"{name}.pcap", "notes": []} for name in "abcdef"[:number]]


def test_the_note_names_the_capture_that_shares_most_and_the_clock() -> None:
    one = {number: 1000 * number for number in range(60)}
    few = {number: 1000 * number for number in (*range(20), *range(900, 940))}
    third = {number: time - 700 * MS for number, time in one.items() if number < 50}
    given = samples(few), samples(one), samples(third)
    places = find_places(["a.pcap", "b.pcap", "c.pcap"], given)
    told = rows(3)
    places.add_notes(told, [])
    assert told[0]["notes"] == []
    (note,) = told[2]["notes"]
    assert "holds packets of b.pcap, seen at another place" in note
    assert "the clock is about 700 ms behind" in note
    assert "(50 of 50 that were compared)" in note


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (500_000, "seen at another place ("),
        (500_001, "about 500 us behind"),
        (-500_001, "about 500 us ahead"),
        (0, "with the same times ("),
    ],
)
def test_clocks_that_differ_by_half_a_millisecond_are_the_same(behind: int, words: str) -> None:
    told = rows(2)
    find_places(["a.pcap", "b.pcap"], pair(20, 5, behind=-behind)).add_notes(told, [])
    assert words in told[1]["notes"][0]


def test_what_is_said_to_be_a_copy_is_not_said_again() -> None:
    told = rows(2)
    find_places(["a.pcap", "b.pcap"], pair(20, 5)).add_notes(told, [1])
    assert told[1]["notes"] == []
