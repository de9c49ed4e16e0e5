"""Differences as lines: a sentence, each effect once, and what `why` finds on both sides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kwsniff.cli.compare import _spans
from kwsniff.cli.compare_lines import SideAnswer, compare_lines, figure, interval
from kwsniff.findings.compare import Difference
from kwsniff.findings.compare_effects import describe, group_effects
from kwsniff.findings.display_filters import DisplayFilter
from kwsniff.findings.finding import Finding

SIDES = (SideAnswer("GOOD, monday.pcap", 10), SideAnswer("BAD, tuesday.pcap", 20, (), 3))
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def difference(
    kind: str = "client", subject: str = "shop", what: str = "broker_ms", **more: Any
) -> Difference:
    plain = Difference(
        kind, subject, what, 1.5, 250.4, 166.9, (7, 8), (1.0, 2.0), (240.0, 260.6), 0.5, 0.5
    )  # fmt: skip
    return replace(plain, **more)


def finding(name: str, first: float = 0, last: float = 0) -> Finding:
    begin, end = (NOON + timedelta(seconds=seconds) for seconds in (first, last))
    return Finding(
        name, "problem", "certain", "broker", "broker", "10.0.0.1:9092", begin, end, 1.0, None, "ms", 1, None,
        [], [], None, f"What {name} says.", "", "",
    )  # fmt: skip


def lines(differences: list[Difference], sides: Any = SIDES, width: int = 120) -> list[str]:
    filters = {7: [DisplayFilter(7, "bad.pcap", "frame.number in {70, 71}")]}
    return [*compare_lines(differences, sides, width, filters)]


def test_an_effect_is_one_row_and_names_the_others_that_show_it() -> None:
    found = [
        difference(),
        difference("topic", "orders"),
        difference("api", "Fetch", "errors", good=0, bad=0.5),
    ]
    shown = lines(found)
    assert [line.split()[:3] for line in shown if line.startswith("  ")][1:3] == [
        ["broker_ms", "client", "shop"],
        ["errors", "api", "Fetch"],
    ]
    assert "broker_ms also: topic orders" in shown
    assert "2 effects, largest contribution first:" in shown
    first = shown.index("Calls of the first effect:")
    assert shown[first + 1] == "  7: frame.number in {70, 71}"


def test_a_mean_and_the_longest_of_a_part_are_one_effect() -> None:
    (effect,) = group_effects([difference(what="longest_broker_ms"), difference("api", "Produce")])
    assert (effect.what, effect.first.what, len(effect.others)) == ("broker_ms", "longest_broker_ms", 1)


def test_many_others_are_counted() -> None:
    (line,) = (
        line
        for line in lines([difference(subject=f"shop-{number}") for number in range(12)], width=400)
        if line.startswith("broker_ms also")
    )
    assert line.endswith("client shop-8, and 3 more")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (difference(), "Calls of client shop waited 250 ms for the broker instead of 1.5 ms on average."),
        (
            difference("api", "Produce", "longest_network_ms", good=0.0, bad=2500.0),
            "Produce calls spent up to 2.5 s in the network instead of up to 0 ms.",
        ),
        (
            difference("topic", "orders", "errors", good=0.0, bad=0.25),
            "Calls for topic orders failed in 25 % of cases instead of 0 %.",
        ),
        (
            difference("broker", "10.0.0.1:9092", "calls_per_second", good=2.0, bad=12.5),
            "Calls at broker 10.0.0.1:9092 came 12.5 times per second instead of 2.",
        ),
    ],
)
def test_the_first_difference_is_a_sentence(given: Difference, sentence: str) -> None:
    assert describe(given) == sentence
    assert lines([given])[0] == sentence


def test_both_sides_are_named_with_their_calls_and_how_many_are_harmed() -> None:
    shown = lines([difference()])
    assert shown[2:4] == ["GOOD, monday.pcap: 10 calls", "BAD, tuesday.pcap: 20 calls, 3 harmed"]


def test_findings_are_those_of_bad_those_of_both_and_those_of_good() -> None:
    good = replace(SIDES[0], findings=(finding("far_away"), finding("unknown_topic")))
    bad = replace(SIDES[1], findings=(finding("broker_stalled"), finding("far_away")))
    shown = lines([], (good, bad))
    assert shown[0] == "No significant difference."
    start = shown.index("Findings in BAD only:")
    assert shown[start:] == [
        "Findings in BAD only:",
        "  broker_stalled, owner: broker. What broker_stalled says.",
        "",
        "Findings in both:",
        "  far_away, owner: broker. What far_away says.",
        "",
        "Findings in GOOD only:",
        "  unknown_topic, owner: broker. What unknown_topic says.",
    ]


@pytest.mark.parametrize(
    ("first", "last", "sides"),
    [(-9, -1, (0,)), (1, 9, (1,)), (-5, 5, (0, 1)), (-0.1, 9, (1,)), (-9, 0.1, (0,)), (0, 0, (1,))],
)
def test_a_finding_belongs_to_the_side_of_the_time_on_which_it_is(
    first: float, last: float, sides: tuple[int, ...]
) -> None:
    assert _spans(finding("broker_stalled", first, last), NOON) == sides


def test_a_finding_without_a_time_belongs_to_both_sides() -> None:
    assert _spans(replace(finding("far_away"), first_time=None), NOON) == (0, 1)


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.01234, "0.0123"), (99.94, "99.9"), (100.4, "100"), (999.6, "1000")]
)
def test_figures_have_three_digits(value: float | None, shown: str) -> None:
    assert figure(value) == shown


def test_means_alone_have_bounds() -> None:
    assert interval((0.1, 0.1)) == ""
    assert interval((0.1, 250.0)) == "0.1 to 250"
