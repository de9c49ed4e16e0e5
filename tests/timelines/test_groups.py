"""Rebalances: scripted ones, and those that Kafka's own brokers made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import analyzed, analyzed_packets, moment
from tests.pipeline.test_recorded import CAPTURES, about
from tests.traffic import membership
from tests.traffic.tcp import MILLISECOND, Scene, Script

Row = dict[str, Any]
EPOCH_NS = 1_700_000_000 * 10**9
ANA = {"member": "ana-1", "client_id": "ana"}
BOB = {"member": "bob-1", "client_id": "bob"}


class Story:
    """Members of a group, each on a connection of its own. Times in milliseconds."""

    def __init__(self) -> None:
        self.scene = Scene()
        self._scripts: dict[str, Script] = {}
        self._number = 0

    def say(self, call: Any, at: float, answer: float | None, **words: Any) -> None:
        who = words["client_id"]
        if who not in self._scripts:
            self._scripts[who] = self.scene.connection()
            self._scripts[who].open(at=int(at * MILLISECOND) - MILLISECOND // 2)
        self._number += 1
        exchange = call(self._number, "g", **words)
        when = None if answer is None else int(answer * MILLISECOND)
        self._scripts[who].call(exchange, at=int(at * MILLISECOND), answer_at=when)

    def founded_by_two(self) -> None:
        """Generation 1 is ana's; bob asks for an id, comes in and makes generation 2."""
        self.say(membership.join, 10, 20, **ANA, asked_as="ana-1", generation=1, members=["ana-1"])
        self.say(membership.sync, 21, 23, **ANA, generation=1)
        self.say(membership.join, 100, 101, **BOB, generation=0, error=79)
        self.say(membership.join, 102, 140, **BOB, asked_as="bob-1", generation=2, members=["ana-1", "bob-1"])
        self.say(membership.beat, 110, 112, **ANA, generation=1, error=27)
        self.say(membership.join, 120, 140, **ANA, asked_as="ana-1", generation=2, members=["ana-1", "bob-1"])
        self.say(membership.sync, 141, 150, **ANA, generation=2)
        self.say(membership.sync, 142, 151.5, **BOB, generation=2)

    def rows(self, folder: Path) -> list[Row]:
        return list(analyzed_packets(folder, self.scene.packets())["groups"])


def at(milliseconds: float) -> Any:
    return moment(EPOCH_NS + int(milliseconds * MILLISECOND))


def assert_row(row: Row, **expected: Any) -> None:
    assert {name: row[name] for name in expected} == expected


def test_a_group_founded_and_joined(tmp_path: Path) -> None:
    story = Story()
    story.founded_by_two()
    first, second = story.rows(tmp_path)
    assert_row(
        first,
        group_id="g",
        kind="classic",
        protocol_type="consumer",
        generation_before=None,
        generation=1,
        reason="member_joined",
        reason_member="ana-1",
        members=["ana-1"],
        member_count=1,
        begin_time=at(10),
        end_time=at(23),
        duration_ns=13 * MILLISECOND,
        calls=2,
        error_count=0,
    )
    assert_row(
        second,
        generation_before=1,
        generation=2,
        reason="member_joined",
        reason_member="bob-1",
        members=["bob-1", "ana-1"],
        member_count=2,
        first_member="bob-1",
        first_join_time=at(102),
        last_member="ana-1",
        last_join_time=at(120),
        begin_time=at(100),
        end_time=at(151.5),
        duration_ns=51_500_000,
        calls=5,
        error_count=1,
    )


def test_a_join_that_nobody_answers_is_one_all_the_same(tmp_path: Path) -> None:
    story = Story()
    story.say(membership.join, 10, None, **ANA, asked_as="ana-1", generation=1)
    (row,) = story.rows(tmp_path)
    assert_row(
        row, generation=None, members=["ana-1"], calls=1, error_count=0, begin_time=at(10), end_time=None
    )


def test_a_join_that_is_refused_takes_no_part(tmp_path: Path) -> None:
    """GROUP_MAX_SIZE_REACHED (81) sends it away; MEMBER_ID_REQUIRED (79) is how a join begins (KIP-394)."""
    story = Story()
    story.say(membership.join, 10, 11, **ANA, asked_as="ana-1", generation=0, error=81)
    assert story.rows(tmp_path) == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_member_that_leaves_makes_the_others_join_again(tmp_path: Path, version: int) -> None:
    story = Story()
    story.founded_by_two()

    def leave(number: int, group: str, **words: Any) -> Any:
        return membership.leave(version, number, group, **words)

    story.say(leave, 3000, 3001, **BOB)
    story.say(membership.beat, 3050, 3051, **ANA, generation=2, error=27)
    story.say(membership.join, 3052, 3060, **ANA, asked_as="ana-1", generation=3, members=["ana-1"])
    story.say(membership.sync, 3061, 3062, **ANA, generation=3)
    assert_row(
        story.rows(tmp_path)[-1],
        generation_before=2,
        generation=3,
        reason="member_left",
        reason_member="bob-1",
        members=["ana-1"],
        begin_time=at(3052),
        end_time=at(3062),
        duration_ns=10 * MILLISECOND,
    )


def test_a_member_that_was_silent_for_its_session_is_why(tmp_path: Path) -> None:
    """How long sessions last (45 s here) is said with every JoinGroup."""
    story = Story()
    story.founded_by_two()
    story.say(membership.beat, 3000, 3001, **BOB, generation=2)
    for at_ms in range(3000, 51_000, 3000):
        story.say(membership.beat, at_ms + 2, at_ms + 3, **ANA, generation=2)
    story.say(membership.join, 51_010, 51_020, **ANA, asked_as="ana-1", generation=3, members=["ana-1"])
    story.say(membership.sync, 51_021, 51_022, **ANA, generation=3)
    assert_row(
        story.rows(tmp_path)[-1],
        generation=3,
        reason="session_expired",
        reason_member="bob-1",
        members=["ana-1"],
        session_timeout_ms=45_000,
    )


def test_a_member_that_fell_silent_is_why_where_nobody_says_how_long_sessions_last(tmp_path: Path) -> None:
    story = Story()
    story.say(membership.consumer_heartbeat, 10, 12, **ANA, epoch=4, answered=4)
    story.say(membership.consumer_heartbeat, 20, 21, **BOB, epoch=4, answered=4)
    for at_ms in range(5000, 60_000, 5000):
        story.say(membership.consumer_heartbeat, at_ms, at_ms + 1, **ANA, epoch=4, answered=4)
    story.say(membership.consumer_heartbeat, 60_000, 60_001, **ANA, epoch=5, answered=5)
    assert_row(
        story.rows(tmp_path)[-1],
        generation=5,
        reason="heartbeat_gap",
        reason_member="bob-1",
        members=["ana-1"],
        session_timeout_ms=None,
    )


def test_a_session_that_has_not_expired_is_not_why(tmp_path: Path) -> None:
    story = Story()
    story.founded_by_two()
    story.say(membership.beat, 3000, 3001, **BOB, generation=2)
    story.say(membership.join, 40_000, 40_010, **ANA, asked_as="ana-1", generation=3, members=["ana-1"])
    assert_row(story.rows(tmp_path)[-1], generation=3, reason="metadata_change", reason_member=None)


def test_a_member_that_the_coordinator_does_not_know_any_more_had_expired(tmp_path: Path) -> None:
    story = Story()
    story.founded_by_two()
    story.say(membership.join, 20_000, 20_020, **ANA, asked_as="ana-1", generation=3, members=["ana-1"])
    story.say(membership.sync, 20_021, 20_025, **ANA, generation=3)
    story.say(membership.beat, 20_500, 20_501, **BOB, generation=2, error=25)
    tables = analyzed_packets(tmp_path, story.scene.packets())
    assert_row(tables["groups"][-1], generation=3, reason="session_expired", reason_member="bob-1")
    (bob,) = [row for row in tables["members"] if row["member_id"] == "bob-1"]
    assert_row(bob, left_how="session_expired", left_time=at(20_501), joined_time=at(100), client_id="bob")
    (ana,) = [row for row in tables["members"] if row["member_id"] == "ana-1"]
    assert_row(ana, left_how="open_at_end", left_time=None, generation=3, last_time=at(20_021))


def test_who_has_left_does_not_expire(tmp_path: Path) -> None:
    story = Story()
    story.founded_by_two()
    story.say(lambda *known, **more: membership.leave(4, *known, **more), 3000, 3001, **BOB)
    story.say(membership.join, 3052, 3060, **ANA, asked_as="ana-1", generation=3, members=["ana-1"])
    story.say(membership.beat, 3100, 3101, **BOB, generation=2, error=25)
    tables = analyzed_packets(tmp_path, story.scene.packets())
    assert_row(tables["groups"][-1], generation=3, reason="member_left", reason_member="bob-1")
    assert [row["left_how"] for row in tables["members"] if row["member_id"] == "bob-1"] == ["left"]


def test_the_same_members_again_is_a_change_of_metadata(tmp_path: Path) -> None:
    story = Story()
    story.founded_by_two()
    both = ["ana-1", "bob-1"]
    story.say(membership.join, 2000, 2020, **ANA, asked_as="ana-1", generation=3, members=both)
    story.say(membership.join, 2010, 2020, **BOB, asked_as="bob-1", generation=3, members=both)
    story.say(membership.sync, 2021, 2025, **ANA, generation=3)
    story.say(membership.sync, 2022, 2026, **BOB, generation=3)
    assert_row(
        story.rows(tmp_path)[-1],
        generation=3,
        reason="metadata_change",
        reason_member=None,
        members=both,
        duration_ns=26 * MILLISECOND,
    )


def test_a_group_that_was_empty_is_founded_anew(tmp_path: Path) -> None:
    story = Story()
    story.say(membership.join, 10, 20, **ANA, asked_as="ana-1", generation=1, members=["ana-1"])
    story.say(membership.sync, 21, 23, **ANA, generation=1)

    def leave(number: int, group: str, **words: Any) -> Any:
        return membership.leave(4, number, group, **words)

    story.say(leave, 100, 101, **ANA)
    story.say(membership.join, 9000, 9020, **BOB, asked_as="bob-1", generation=3, members=["bob-1"])
    story.say(membership.sync, 9021, 9023, **BOB, generation=3)
    assert_row(
        story.rows(tmp_path)[-1],
        generation=3,
        reason="member_joined",
        reason_member="bob-1",
        begin_time=at(9000),
    )


def test_a_capture_that_begins_in_the_middle_does_not_guess_why(tmp_path: Path) -> None:
    story = Story()
    story.say(membership.join, 10, 20, **ANA, asked_as="ana-1", generation=7, members=["ana-1"])
    (row,) = story.rows(tmp_path)
    assert_row(row, generation=7, generation_before=None, reason="unknown", end_time=None, duration_ns=None)


def test_joins_that_come_to_nothing_are_a_row_without_generation(tmp_path: Path) -> None:
    story = Story()
    story.say(membership.join, 10, 11, **ANA, generation=0, error=79)
    (row,) = story.rows(tmp_path)
    assert_row(
        row, generation=None, members=["ana-1"], calls=1, error_count=1, end_time=None, begin_time=at(10)
    )


@pytest.mark.parametrize(
    ("beat", "kind"), [(membership.consumer_heartbeat, "consumer"), (membership.share_heartbeat, "share")]
)
def test_epochs_of_kip_848_are_rebalances(tmp_path: Path, beat: Any, kind: str) -> None:
    story = Story()
    story.say(beat, 10, 12, **ANA, epoch=0, answered=1)
    story.say(beat, 20, 21, **ANA, epoch=1, answered=1)
    story.say(beat, 100, 102, **BOB, epoch=0, answered=2)
    story.say(beat, 110, 113, **BOB, epoch=2, answered=2)
    story.say(beat, 5020, 5021, **ANA, epoch=1, answered=2)
    story.say(beat, 5030, 5032, **ANA, epoch=2, answered=2)
    story.say(beat, 5100, 5101, **BOB, epoch=-1, answered=-1)
    story.say(beat, 10_040, 10_041, **ANA, epoch=3, answered=3)
    first, second, third = story.rows(tmp_path)
    assert_row(
        first,
        kind=kind,
        generation=1,
        reason="member_joined",
        reason_member="ana-1",
        members=["ana-1"],
        begin_time=at(10),
        end_time=at(21),
        duration_ns=11 * MILLISECOND,
    )
    assert_row(
        second,
        generation_before=1,
        generation=2,
        reason="member_joined",
        reason_member="bob-1",
        members=["bob-1", "ana-1"],
        first_join_time=at(100),
        last_join_time=at(5030),
        begin_time=at(100),
        end_time=at(5032),
    )
    assert_row(
        third,
        generation=3,
        reason="member_left",
        reason_member="bob-1",
        members=["ana-1"],
        begin_time=at(5100),
        end_time=at(10_041),
    )


def test_a_new_epoch_without_joins_is_a_change_of_metadata(tmp_path: Path) -> None:
    story = Story()
    for time, epoch in ((10, 4), (5010, 4), (10_010, 5)):
        story.say(membership.consumer_heartbeat, time, time + 1, **ANA, epoch=epoch, answered=epoch)
    (row,) = story.rows(tmp_path)
    assert_row(row, generation_before=4, generation=5, reason="metadata_change", members=["ana-1"])


def recorded(name: str) -> list[Row]:
    return list(analyzed(CAPTURES / name / about(name)["file"])["groups"])


def test_the_recorded_rebalance_is_one_member_alone() -> None:
    (row,) = recorded("rebalance")
    assert_row(row, group_id="billing", kind="classic", generation=2, member_count=1, calls=2, error_count=0)
    assert row["duration_ns"] > 0


@pytest.mark.parametrize(("name", "kind"), [("group_classic", "classic"), ("group_consumer", "consumer")])
def test_the_second_static_member_makes_the_recorded_group_rebalance(name: str, kind: str) -> None:
    """The talk starts member `one`, then `two` (group.instance.id), and ends both."""
    first, second = recorded(name)
    assert_row(
        first, group_id="billing", kind=kind, reason="member_joined", reason_member="one", members=["one"]
    )
    assert_row(second, generation_before=first["generation"], reason="member_joined", reason_member="two")
    assert set(second["members"]) == {"one", "two"}
    assert second["first_member"] == "two"
    assert first["end_time"] <= second["begin_time"] < second["end_time"]


def test_a_recorded_streams_group_goes_from_epoch_to_epoch() -> None:
    rows = recorded("group_streams")
    assert {row["kind"] for row in rows} == {"streams"}
    assert rows[0]["reason"] == "member_joined"
    generations = [row["generation"] for row in rows]
    assert generations == sorted(set(generations))
    assert [row["generation_before"] for row in rows[1:]] == generations[:-1]
