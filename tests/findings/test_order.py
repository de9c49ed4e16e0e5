"""What a rule says does not depend on the order in which a database reads rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

from kwsniff.findings.rule import load_rules

AGGREGATE = re.compile(r"\b(string_agg|list|array_agg|first|last)\(")
SORTED = ("list_sort(", "list_distinct(", "list_sort(list_distinct(", "list_distinct(flatten(", "flatten(")


def _unordered(sql: str) -> Iterator[str]:
    for found in AGGREGATE.finditer(sql):
        end, depth = found.end(), 1
        while depth:
            depth += (sql[end] == "(") - (sql[end] == ")")
            end += 1
        if "order by" not in sql[found.start() : end] and not sql[: found.start()].endswith(SORTED):
            yield sql[found.start() : end]


def test_lists_and_texts_of_several_rows_are_put_in_order() -> None:
    texts = {rule.name: rule.query for rule in load_rules()}
    folder = files("kwsniff.findings").joinpath("shared_views")
    texts |= {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    # A set of topics, in which another is looked for: its order shows nowhere.
    known = {"replicas.sql": ["list(topic)"]}
    found = {name: [*_unordered(sql)] for name, sql in texts.items()}
    assert {name: some for name, some in found.items() if some} == known


def test_a_list_without_an_order_is_noticed() -> None:
    assert [*_unordered("select list(a), string_agg(b, ', ' order by b), list_sort(list(c))")] == ["list(a)"]
