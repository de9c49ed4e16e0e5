"""One target per compiled entry point. A round (target, seed, number of executions) always does the same."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from kwsniff.core.columns import COLUMNS
from kwsniff.core.engine import STATUSES, run
from kwsniff.core.records import batches
from kwsniff.errors import CaptureError
from tests.hostile import mutate, seeds

Hold = Callable[[bytes], Any]
"""Puts an input where reading beyond its end is noticed; gives what is read instead of it."""


class Broken(AssertionError):
    """The core broke a promise; says which, and the execution's number."""


def capture_files(seed: int, executions: int, hold: Hold) -> None:
    """Capture files damaged as files, fed in one piece or in several."""
    dice = random.Random(seed)
    found = list(seeds.files().values())
    analyzer = seeds.analyzer()
    for number in range(executions):
        data = bytes(mutate.damaged_bytes(dice, dice.choice(found)))
        _one_capture(analyzer, data, dice, hold)
        if number % 50 == 49:
            _take(analyzer)
    _end(analyzer)


def packets(seed: int, executions: int, hold: Hold) -> None:
    """Well-formed captures of packets damaged inside; connections go on from one to the next."""
    dice = random.Random(seed)
    found = [mutate.rows_of(packets_) for packets_ in seeds.talks().values()]
    limits = dice.choice(LIMITS)
    analyzer = seeds.analyzer(limits=limits, ports=dice.choice(((), (9092,))))
    for number in range(executions):
        rows = dice.choice(found)
        if len(rows) > 24:
            start = dice.randrange(len(rows) - 20)
            rows = rows[start : start + dice.randrange(4, 24)] if dice.random() < 0.8 else rows
        _one_capture(analyzer, mutate.capture_of(mutate.damaged_rows(dice, rows)), dice, hold)
        if number % 50 == 49:
            _take(analyzer)
    _end(analyzer)


LIMITS: tuple[Mapping[str, int], ...] = (
    {},
    {"held_bytes": 300, "held_segments": 2, "gap_patience": 1},
    {"held_bytes_total": 500, "frame_kept_bytes_total": 3000, "frame_kept_bytes": 900},
    {"connections": 1, "outstanding_calls": 2, "parked_responses": 1, "parked_bytes": 20, "topic_ids": 1},
    {"cells": 30, "call_facts_bytes": 10, "search_bytes": 100, "frame_bytes": 2000},
)
"""Small limits put the code behind them within reach of small inputs."""


def _one_capture(analyzer: Any, data: bytes, dice: random.Random, hold: Hold) -> None:
    analyzer.open_capture("hostile")
    cut = dice.randrange(len(data)) if data and dice.random() < 0.3 else len(data)
    try:
        for piece in (data[:cut], data[cut:]):
            analyzer.feed(hold(piece))
        facts = analyzer.close_capture()
    except CaptureError:
        return
    verdicts = sum(facts[name] for name in facts if name.startswith("packets_"))
    if verdicts != facts["packets"]:
        raise Broken(f"{verdicts} verdicts for {facts['packets']} packets")


def _take(analyzer: Any) -> None:
    for table in COLUMNS:
        analyzer.take(table)


def _end(analyzer: Any) -> None:
    analyzer.finish()
    _take(analyzer)


def _engine(how: int) -> Callable[[int, int, Hold], None]:
    def target(seed: int, executions: int, hold: Hold) -> None:
        from tests.hostile.swarm import engine_round

        done, promise = engine_round(seeds.messages(), seed, 0, executions, how)
        if promise != "kept":
            raise Broken(f"{promise}: execution {done - 1}")

    return target


def records(seed: int, executions: int, hold: Hold) -> None:
    """Record sets: the compiled walk over batches and their CRCs."""
    from tests.hostile.swarm import records_round

    done, promise = records_round(seeds.record_sets(), seed, 0, executions)
    if promise != "kept":
        raise Broken(f"{promise}: execution {done - 1}")


def python_entries(seed: int, executions: int, hold: Hold) -> None:
    """The functions that Python calls: engine.run and records.batches on damaged messages and record sets."""
    dice = random.Random(seed)
    pairs, sets = seeds.messages(), seeds.record_sets()
    for number in range(executions):
        code, message = dice.choice(pairs)
        data = hold(bytes(mutate.damaged_bytes(dice, message)))
        cells, status, _, _ = run(code, data, max_cells=dice.choice((1, 50, 100_000)))
        if not 0 <= status < len(STATUSES) or len(cells) % 16:
            raise Broken(f"status {status}: execution {number}")
        found, _, _ = batches(hold(bytes(mutate.damaged_bytes(dice, dice.choice(sets)))))
        if any(entry.size <= 0 for entry in found):
            raise Broken(f"an empty batch: execution {number}")


TARGETS: Mapping[str, tuple[Callable[[int, int, Hold], None], int]] = {
    "capture_files": (capture_files, 500),
    "packets": (packets, 500),
    "messages": (_engine(0), 200_000),
    "programs": (_engine(1), 200_000),
    "invented_programs": (_engine(2), 200_000),
    "records": (records, 200_000),
    "python_entries": (python_entries, 2_000),
}
"""Name to target and executions of one round. Those of 200,000 need the built swarm."""
