"""What brokers counted, as java/Counters.java writes it, against rows; see soak.py for real brokers."""

from __future__ import annotations

from tests.live.jmx import parsed, unlike

LINES = """\
between\t1000\t1200
RequestsPerSec\tFetch\t17\tCount\t5
RequestsPerSec\tFetchFollower\t17\tCount\t3
RequestsPerSec\tCreateTopics\t7\tCount\t1
ErrorsPerSec\tFetch\tNONE\tCount\t4
ErrorsPerSec\tFetch\tOFFSET_OUT_OF_RANGE\tCount\t1
TotalTimeMs\tFetch\t\tCount\t5
TotalTimeMs\tFetch\t\tMean\t2.5
TotalTimeMs\tFetchFollower\t\tCount\t3
TotalTimeMs\tFetchFollower\t\tMean\t1.5
RequestBytes\tFetch\t\tCount\t5
"""


def test_what_a_broker_counted_is_read_once() -> None:
    """Kafka counts a follower's Fetch under two names; its times are of each."""
    found = parsed(LINES.splitlines(), (9092, 9093))
    assert found.until == 1100
    assert found.requests == {("Fetch", 17): 5, ("CreateTopics", 7): 1}
    assert found.errors == {("Fetch", "OFFSET_OUT_OF_RANGE"): 1}
    assert found.means == {("Fetch", "TotalTimeMs"): (5, 2.5), ("FetchFollower", "TotalTimeMs"): (3, 1.5)}


def test_every_number_that_differs_is_named() -> None:
    theirs: dict[tuple[str, object], int] = {("Fetch", 17): 5, ("CreateTopics", 7): 1}
    assert unlike("at 9092", {("Fetch", 17): 5, ("CreateTopics", 7): 1}, theirs) == []
    assert unlike("at 9092", {("Fetch", 17): 4}, theirs) == [
        "at 9092: CreateTopics 7: tables 0, JMX 1",
        "at 9092: Fetch 17: tables 4, JMX 5",
    ]
    assert unlike("at 9092", {("Fetch", 17): 5, ("Produce", 9): 1}, theirs)[-1].endswith("tables 1, JMX 0")


def test_an_envelope_is_what_it_holds() -> None:
    theirs: dict[tuple[str, object], int] = {("Fetch", 17): 5, ("CreateTopics", 7): 1}
    assert unlike("at 9092", {("Fetch", 17): 5, ("Envelope", 0): 1}, theirs) == []
    assert len(unlike("at 9092", {("Fetch", 17): 4, ("Envelope", 0): 1}, theirs)) == 3


def test_whose_client_was_gone_may_count_or_not() -> None:
    theirs: dict[tuple[str, object], int] = {("Fetch", 17): 5}
    assert unlike("at 9092", {("Fetch", 17): 3}, theirs, {("Fetch", 17): 2, ("Metadata", 9): 1}) == []
    assert unlike("at 9092", {("Fetch", 17): 5}, theirs, {("Fetch", 17): 2}) == []
    assert len(unlike("at 9092", {("Fetch", 17): 2}, theirs, {("Fetch", 17): 2})) == 1
    assert len(unlike("at 9092", {("Fetch", 17): 6}, theirs, {("Fetch", 17): 2})) == 1
