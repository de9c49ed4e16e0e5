"""Effects of a comparison: each difference once, for the calls that show it most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kwsniff.findings.call_groups import LONGEST
from kwsniff.texts import clean, in_percent, in_time

if TYPE_CHECKING:
    from kwsniff.findings.compare import Difference

_NS_PER_MS: Final = 1_000_000
_CALLS_OF: Final = {
    "client": "Calls of client {}",
    "broker": "Calls at broker {}",
    "api": "{} calls",
    "topic": "Calls for topic {}",
    "partition": "Calls for partition {}",
    "acks": "Calls with acks={}",
    "codec": "Calls with codec {}",
    "version": "Calls of {}",
    "software": "Calls of {}",
}
"""Kind of subject -> its calls in words; a version is an API with its version, a software has its own."""
_VERBS: Final = {
    "network_ms": "spent {} in the network",
    "transmission_ms": "took {} to transmit",
    "queue_ms": "waited {} behind other calls",
    "broker_ms": "waited {} for the broker",
    "throttle_ms": "were throttled for {}",
    "replicas_ms": "waited {} for replicas",
    "group_ms": "waited {} for their group",
    "authentication_delay_ms": "waited {} for a failed authentication",
    "round_trip_ms": "had a round trip of {}",
    "errors": "failed in {} of cases",
    "retransmitted": "had {} of their bytes retransmitted",
    "calls_per_second": "came {} times per second",
}
"""Measure -> what those calls did; the place is for its value."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Differences in one measure."""

    what: str
    """The measure, a mean and the longest being one."""
    first: "Difference"
    """The one with the largest contribution."""
    others: tuple["Difference", ...]


def group_effects(differences: Sequence["Difference"]) -> list[Effect]:
    """The effects of differences, which are in their order."""
    found: dict[str, list[Difference]] = {}
    for each in differences:
        found.setdefault(each.what.removeprefix(LONGEST), []).append(each)
    return [Effect(what, first, tuple(others)) for what, (first, *others) in found.items()]


def describe(difference: "Difference") -> str:
    """A sentence: whose calls, what they did in BAD, and in GOOD."""
    whose = _CALLS_OF[difference.subject_kind].format(clean(difference.subject))
    what = difference.what.removeprefix(LONGEST)
    good, bad = (_value(what, value) for value in (difference.good, difference.bad))
    if what != difference.what:
        return f"{whose} {_VERBS[what].format(f'up to {bad}')} instead of up to {good}."
    mean = " on average" if what.endswith("_ms") else ""
    return f"{whose} {_VERBS[what].format(bad)} instead of {good}{mean}."


def _value(what: str, value: float) -> str:
    if what.endswith("_ms"):
        return in_time(value * _NS_PER_MS) if value else "0 ms"
    return f"{value:.3g}" if what == "calls_per_second" else in_percent(value)
