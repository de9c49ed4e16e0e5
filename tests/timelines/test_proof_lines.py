"""Proofs found by halving are those that looking at every mark finds; what is remembered does not grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwsniff.timelines.waits import evidence, proofs
from kwsniff.timelines.waits.evidence import WINDOW_US, Marks
from kwsniff.timelines.waits.group_waits import Asked, Meetings, Moment
from kwsniff.timelines.waits.mark_lines import MOST_OUT_OF_ORDER, WaitingCalls
from kwsniff.timelines.waits.proofs import AFTER_US, LOCAL_US, Own

MS = 1_000
Row = dict[str, Any]


@st.composite
def scenes(draw: st.DrawFn, *, ordered: bool) -> tuple[list[Row], list[Row]]:
    """Marks and held calls as they are told; within a connection in order, or in any."""
    marks: list[Row] = []
    calls: list[Row] = []
    now = number = clock = 0
    lasts: dict[tuple[int, int], int] = {}
    asked: dict[tuple[int, int], int] = {}
    for _ in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from([1, 5 * MS, 40 * MS, 400 * MS]))
        end = now if ordered else now + draw(st.integers(-60 * MS, 60 * MS))
        number, clock = number + 1, max(clock, end)
        place, connection = draw(st.integers(0, 1)), draw(st.integers(0, 2))
        took = draw(st.integers(1, 300 * MS))
        begin = end - took
        first = draw(st.integers(0, 6))
        told = {"place": place, "end": end, "number": number, "clock": clock}
        kind = draw(st.sampled_from(["fetch", "produce", "call", "call"]))
        if kind == "call":
            turn = float(begin)
            network = draw(st.sampled_from([0.0, 2.5, 10.0 * MS]))
            call = {**told, "turn": turn, "done": float(end), "network": network}
            calls.append({**call, "base": first, "reached": first + 2})
            continue
        key = place, connection
        offset = draw(st.integers(0, 8))
        if ordered:
            begin = min(max(begin, lasts.get(key, begin)), end)
            lasts[key] = begin
            offset = max(offset, asked.get(key, 0))
            asked[key] = offset
        mark = {**told, "connection_id": connection, "time": begin}
        if kind == "fetch":
            marks.append({**mark, "asked": offset, "base": draw(st.sampled_from([-1, first])), "reached": -1})
        else:
            marks.append({**mark, "asked": -1, "base": first, "reached": first + draw(st.integers(1, 3))})
    return marks, calls


def columns(kind: type[Any], rows: list[Row]) -> Any:
    types = {"turn": float, "done": float, "network": float}
    return kind(*(np.array([row[name] for row in rows], types.get(name, np.int64)) for name in kind._fields))


def may_prove(mark: Row, call: Row) -> bool:
    return bool(
        abs(mark["end"] - call["end"]) <= WINDOW_US
        and abs(mark["number"] - call["number"]) <= evidence.MOST_EVENTS
        and mark["clock"] <= call["end"] + WINDOW_US
        and call["clock"] <= mark["end"] + WINDOW_US
    )


def until(call: Row, proof: float) -> float:
    return float(call["done"] if call["done"] - proof <= AFTER_US else proof)


def followed(call: Row, marks: list[Row]) -> tuple[float, float] | None:
    """Every mark looked at, as the rule says it."""
    written = call["turn"] + LOCAL_US
    firsts: dict[int, float] = {}
    for mark in marks:
        arrived = mark["time"] + call["network"]
        if mark["asked"] < 0 or mark["place"] != call["place"] or not may_prove(mark, call):
            continue
        if mark["asked"] >= call["reached"] and arrived <= call["done"]:
            who = mark["connection_id"]
            firsts[who] = min(arrived, firsts.get(who, arrived))
        if mark["base"] == call["base"] and arrived <= call["turn"]:
            written = max(written, min(float(mark["end"]), call["done"]))
    latest = max([0.0, *firsts.values()])
    return None if latest <= written else (written, until(call, latest))


def brought(call: Row, marks: list[Row]) -> tuple[float, float] | None:
    """The same of a fetch."""
    when = None
    for mark in marks:
        arrived = mark["time"] + call["network"]
        fits = mark["asked"] < 0 and mark["place"] == call["place"] and arrived <= call["done"]
        if fits and mark["base"] <= call["base"] < mark["reached"] and may_prove(mark, call):
            when = arrived if arrived > call["turn"] else float(mark["end"])
            if arrived <= call["turn"] < when:
                when = None
    if when is None:
        return None
    return call["turn"] + LOCAL_US, until(call, when) if when > call["turn"] else call["turn"]


def check(marks: list[Row], calls: list[Row]) -> None:
    held = columns(WaitingCalls, calls)
    own = columns(Own, [{**call, "row": row} for row, call in enumerate(calls)])
    for rule, plainly, kind in (
        (proofs.find_replication_ends, followed, True),
        (proofs.brought, brought, False),
    ):
        chosen = [mark for mark in marks if (mark["asked"] >= 0) is kind]
        proof = rule(held, own, columns(Marks, chosen))
        found = [
            (float(one), float(two)) if known else None
            for one, two, known in zip(proof.own, proof.until, proof.known, strict=True)
        ]
        assert found == [plainly(call, marks) for call in calls]


@pytest.mark.slow
@settings(max_examples=400)
@given(scenes(ordered=True))
def test_halving_finds_what_looking_at_every_mark_finds(scene: tuple[list[Row], list[Row]]) -> None:
    check(*scene)


@pytest.mark.slow
@settings(max_examples=400)
@given(scenes(ordered=False))
def test_marks_out_of_order_are_looked_at_one_by_one(scene: tuple[list[Row], list[Row]]) -> None:
    check(*scene)


@settings(max_examples=100)
@given(scenes(ordered=True), st.integers(1, 5))
def test_so_many_calls_apart_nothing_proves_anything(scene: tuple[list[Row], list[Row]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "MOST_EVENTS", most)
        check(*scene)


@pytest.mark.parametrize(("number", "proven"), [(MOST_OUT_OF_ORDER, True), (MOST_OUT_OF_ORDER + 1, False)])
def test_many_marks_out_of_order_prove_nothing(number: int, proven: bool) -> None:
    base = {"place": 0, "connection_id": 1, "base": -1, "reached": -1, "clock": 900 * MS, "end": 900 * MS}
    marks = [{**base, "asked": 5, "time": (500 - place) * MS, "number": place} for place in range(number)]
    call = {"turn": 400.0 * MS, "done": 505.0 * MS, "network": 0.0, "end": 505 * MS, "clock": 900 * MS}
    own = {"row": 0, "place": 0, "base": 3, "reached": 5}
    proof = proofs.find_replication_ends(
        columns(WaitingCalls, [{**call, "number": number}]), columns(Own, [own]), columns(Marks, marks)
    )
    assert proof.known.tolist() == [proven]


members = st.tuples(st.sampled_from("abc"), st.integers(0, 2000), st.integers(0, 1500))


@settings(max_examples=300)
@given(st.lists(members, min_size=1, max_size=30), st.sampled_from([0.0, 0.5, 30.0 * MS]))
def test_the_last_member_to_ask_is_found_among_all(rows: list[tuple[str, int, int]], network: float) -> None:
    meetings, asked = Meetings(), []
    meeting = ("billing", 11, 3)
    clock = 0
    for number, (member, begin, took) in enumerate(sorted(rows, key=lambda row: row[1] + row[2])):
        end = (begin + took) * MS
        clock = max(clock, end)
        asked.append(Asked(member, begin * MS, Moment(end, number, clock)))
        meetings.add(meeting, asked[-1])
    for each in asked:
        turn, done = float(each.time), float(each.moment.end)
        arrived = [
            other.time + network
            for other in asked
            if other.member != each.member
            and turn < other.time + network <= done
            and other.moment.proves(each.moment)
        ]
        expected = bool(arrived) and done - max(arrived) <= AFTER_US
        assert meetings.is_ended((meeting, each.member), each.moment, turn, done, network) is expected


def test_what_is_remembered_of_members_goes_with_time() -> None:
    meetings = Meetings()
    for number in range(10_000):
        time = number * 10 * MS
        meetings.add(("billing", 11, number // 500), Asked("a", time, Moment(time, number, time)))
        meetings.forget(time - 2 * WINDOW_US, number - 1000)
        told = meetings.state()
        assert len(told) <= 2
        assert sum(len(asked) for _, asked in told) <= 201
