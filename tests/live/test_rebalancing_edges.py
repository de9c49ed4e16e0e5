"""When a rebalance began and when it is over, member by member."""

from __future__ import annotations

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.live.overdue_responses import OverdueResponses
from kwsniff.live.rebalances import Rebalancing
from kwsniff.tables.build import Builder
from kwsniff.timelines.groups.rebalances import Standing
from tests.tables.columns import table

from .test_rebalances import S, wait


def test_the_longest_rebalance_comes_first_and_lasts_since_its_first_member() -> None:
    rebalancing = Rebalancing(load_catalog(), lambda group: None)
    joins = [
        wait(11, "a", 97 * S)._replace(group_id="short"),
        wait(11, "b", 98 * S)._replace(group_id="long"),
        wait(11, "c", 80 * S)._replace(group_id="long"),
        wait(11, "d", 99 * S)._replace(group_id="long"),
    ]
    rebalancing.add_waiting(OverdueResponses(now=100 * S, joins=tuple(joins)))
    assert [(each.group_id, each.since) for each in rebalancing.under_way] == [
        ("long", 80 * S),
        ("short", 97 * S),
    ]
    assert [each.as_dict(100 * S)["lasts_ns"] for each in rebalancing.under_way] == [20 * S, 3 * S]
    assert rebalancing.under_way[1].as_dict(90 * S)["lasts_ns"] == 0  # by a clock that is behind


class Group:
    """A classic group whose members have joined; rows as the table has them."""

    def __init__(self, *members: str) -> None:
        self.generation = 4
        self.members = frozenset(members)
        self.rebalancing = Rebalancing(load_catalog(), lambda _: self.standing())

    def standing(self) -> Standing:
        row = {"group_id": "g", "kind": "classic", "generation": self.generation, "begin_time": 0}
        return Standing(self.members, self.members, row)

    def sync(self, *members: str, error: int = 0) -> int:
        """Responses to SyncGroup; how many rebalances are over then."""
        number = len(members)
        given: dict[str, list[object]] = {
            "api_key": [14] * number,
            "group_id": [b"g"] * number,
            "group_instance_id": [None] * number,
            "member_id": [member.encode() for member in members],
            "client_id": [b"app"] * number,
            "generation": [self.generation] * number,
            "error_code": [error] * number,
        }
        batch = Builder(load_catalog(), ENUMS).build("api_calls", table("api_calls", number, **given))
        self.rebalancing.add({"api_calls": batch})
        return self.rebalancing.count


def test_a_rebalance_is_over_with_its_last_member_and_counts_once() -> None:
    group = Group("a", "b", "c")
    assert [group.sync("a"), group.sync("b"), group.sync("c"), group.sync("c")] == [0, 0, 1, 1]


def test_members_of_the_generation_before_have_no_part_in_the_next() -> None:
    group = Group("a", "b")
    assert group.sync("a", "b") == 1
    group.generation = 5
    assert [group.sync("a"), group.sync("b")] == [1, 2]


def test_a_member_that_is_refused_has_no_part() -> None:
    group = Group("a", "b")
    assert [group.sync("a"), group.sync("b", error=27), group.sync("b")] == [0, 0, 1]
