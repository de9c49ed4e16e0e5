"""Damaged captures keep the promises: any chunking, one verdict, one bin, no invented call."""

import random

import pytest

from tests.hostile import mutate, seeds
from tests.hostile.fuzz import run_round
from tests.hostile.promises import analyse, calls, check
from tests.hostile.targets import LIMITS, TARGETS


def _cut(dice: random.Random, data: bytes) -> list[bytes]:
    """The same bytes in pieces of a few sizes, single bytes and nothing among them."""
    pieces = []
    at = 0
    while at < len(data):
        size = dice.choice((0, 1, 2, 15, 16, 17, 64, 1500, len(data)))
        pieces.append(data[at : at + size])
        at += size
    return pieces


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", seeds.talks())
def test_any_chunking_of_damaged_packets_gives_identical_tables(name: str):
    dice = random.Random(name)
    rows = mutate.rows_of(seeds.talks()[name])
    for _ in range(25):
        data = mutate.capture_of(mutate.damaged_rows(dice, rows))
        limits = dice.choice(LIMITS)
        ports = dice.choice(((), (9092,)))
        whole = analyse([data], limits=limits, ports=ports)
        check(whole)
        assert whole == analyse([data], limits=limits, ports=ports)
        assert whole == analyse(_cut(dice, data), limits=limits, ports=ports)


def test_any_chunking_of_damaged_files_gives_identical_tables():
    dice = random.Random(11)
    files = [data for data in seeds.files().values() if len(data) < 60_000]
    for _ in range(250):
        data = bytes(mutate.damaged_bytes(dice, dice.choice(files)))
        whole = analyse([data])
        check(whole)
        pieces = analyse(_cut(dice, data))
        assert whole == pieces


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", seeds.talks())
def test_losing_packets_invents_no_call(name: str):
    dice = random.Random(name)
    rows = mutate.rows_of(seeds.talks()[name])
    known = calls(analyse([mutate.capture_of(rows)]))
    assert known
    responses = {(ends, correlation) for ends, correlation, *_ in known}
    for _ in range(30):
        share = dice.choice((0.03, 0.2, 0.6))
        left = [row for row in rows if dice.random() >= share]
        left = left[: dice.randrange(len(left) + 1)] if dice.random() < 0.3 else left
        for ends, correlation, key, version in calls(analyse([mutate.capture_of(left)])):
            if key is None:
                assert (ends, correlation) in responses
            else:
                assert (ends, correlation, key, version) in known


@pytest.mark.parametrize("name", seeds.talks())
def test_cutting_packets_short_invents_no_call(name: str):
    dice = random.Random(name)
    rows = mutate.rows_of(seeds.talks()[name])
    known = calls(analyse([mutate.capture_of(rows)]))
    for snaplen in (60, 68, 80, 96, 128, 200, 600):
        cut = [mutate.Row(row.time_ns, row.frame[:snaplen], row.length) for row in rows]
        chosen = [short if dice.random() < 0.5 else row for short, row in zip(cut, rows, strict=True)]
        for damaged in (cut, chosen):
            found = calls(analyse([mutate.capture_of(damaged)]))
            assert {call for call in found if call[2] is not None} <= known


@pytest.mark.parametrize("name", ["capture_files", "packets", "split_files", "python_entries"])
def test_a_round_of_every_target_flush_against_guard_pages(name: str):
    run_round(name, 5, TARGETS[name][1] // 5)
