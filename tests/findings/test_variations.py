"""Recordings that are cut, or that others are in: the cause is named while it is there, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.findings.measured import Recording, recordings
from tests.findings.variations import VARIATIONS, Pcap, given, vary

pytestmark = pytest.mark.usefixtures("asked_as_written")
ALL = {(each.name, each.place): each for each in recordings()}
STAYS = [
    ("advertised_unreachable", "broker"),
    ("authentication_failed", "broker"),
    ("broker_hangs_up", "broker"),
    ("connection_limit", "broker"),
    ("connection_refused", "broker"),
    ("metadata_storm", "shared"),
    ("not_authorized", "broker"),
    ("offset_out_of_range", "broker"),
    ("request_timed_out", "broker"),
    ("tls_to_plain", "shared"),
    ("unknown_topic", "broker"),
]
"""What goes on for most of the recording: most parts of it show it."""
WHOLE = ("ended_early", "faster", "among_others")

PARTS = [
    (recording, change)
    for number, recording in enumerate(each for each in ALL.values() if not each.cause)
    for place, change in enumerate(("first_half", "second_half", "middle", "begun_late", "dropped", *WHOLE))
    if (number + place) % 2 == 0
]
"""Each healthy recording is changed in half of the ways; neighbours, which resemble it, in the others.
`python -m tests.findings.variations` tries all."""


def _recording(name: str, place: str) -> Recording:
    if place != "shared":
        return ALL[name, place]
    found = [each for each in given() if each.name == name]
    if not found:
        pytest.skip("the recordings are not beside this checkout")
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["begun_late", *WHOLE])
@pytest.mark.parametrize(("name", "place"), STAYS)
def test_a_cause_that_goes_on_is_named_whatever_is_cut(
    name: str, place: str, change: str, tmp_path: Path
) -> None:
    judged = vary(_recording(name, place), VARIATIONS[change], tmp_path)
    assert judged is not None
    assert judged.is_right, judged


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recording", "change"), PARTS, ids=lambda each: each if isinstance(each, str) else each.name
)
def test_parts_of_healthy_recordings_are_healthy(recording: Recording, change: str, tmp_path: Path) -> None:
    judged = vary(recording, VARIATIONS[change], tmp_path)
    others = set() if judged is None else {*judged.others}
    # A capture that lost packets says so, and nothing else.
    assert others <= ({"capture_incomplete"} if change == "dropped" else set())


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("taken", "change", "is_found", "not_said"),
    [
        # Its only broker: what waits for followers elsewhere waits no longer here than what needs none.
        (("stalled_golang", "broker"), "begun_late", True, "replication_slow"),
        # One segment was sent again, and another one long before: a broker that stands still has got it.
        (("stalled_zookeeper", "broker"), "ended_early", True, "path_dead"),
        # Nobody answers, which the capture has whole.
        (("path_dead_python", "client"), "second_half", False, "one_sided"),
        # A broker that no longer knows a connection resets it: it was closed before, and nobody hangs up.
        (("idle_closed", "broker"), "middle", False, "broker_hangs_up"),
        (("idle_sarama", "broker"), "second_half", True, "broker_hangs_up"),
        # Of the transaction only its end is left, which was refused.
        (("producer_fenced", "broker"), "second_half", True, "persistent_error"),
        # What was lost of these were the broker's SYN and its alert.
        (("tls_to_plain_java", "broker"), "dropped", False, "connection_refused"),
        (("plaintext_on_tls", "broker"), "dropped", False, "broker_hangs_up"),
    ],
)
def test_a_part_blames_nobody_else(
    taken: tuple[str, str], change: str, is_found: bool, not_said: str, tmp_path: Path
) -> None:
    judged = vary(_recording(*taken), VARIATIONS[change], tmp_path)
    assert judged is not None
    assert judged.rank == 1 or not is_found
    assert not_said not in judged.others


def test_a_capture_that_is_written_anew_is_the_same(tmp_path: Path) -> None:
    path = ALL["busy_fetch", "broker"].path
    assert Pcap.read(path).write(tmp_path / "again.pcap").read_bytes() == path.read_bytes()
