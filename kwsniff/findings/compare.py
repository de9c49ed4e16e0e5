"""Differences of BAD from GOOD traffic, by subject and part of latency.

A subject (a client, a topic, a value of acks) is compared API by API, so that more fetches are no slower
ones; where GOOD does not have it, with all calls of that API in GOOD. A difference counts when

- it is on at least 10 calls, the means are half a millisecond and a factor of 1.5 apart,
- their intervals, mean ± 2.58 standard errors (99 % for means of many calls), do not meet: a few long calls
  among many make the interval wide,
- and the subject has at least 5 % of total latency in BAD.

Two calls or more that took a second or longer are a difference as well, where nothing in GOOD took a third
of that: a stalled broker delays few calls, and the mean of many does not show it.

Waits for records that do not exist yet are left out: they are harmless.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.call_groups import (
    KINDS,
    LONGEST,
    PARTS,
    ROUND_TRIP,
    STANDSTILLS,
    Side,
    read_groups,
    read_losses,
    read_proofs,
)
from kwsniff.findings.evaluate import fetch
from kwsniff.findings.rule import MOST_PROOFS

if TYPE_CHECKING:
    import duckdb

Z: Final = 2.58
LEAST_CALLS: Final = 10
LEAST_SLOW: Final = 5
"""Of the slowest calls, of which there are few."""
LEAST_NS: Final = 500_000
LEAST_RATIO: Final = 1.5
LEAST_SHARE: Final = 0.05
LEAST_FAILED: Final = 3
RATE_RATIO: Final = 2.0
LEAST_LOST: Final = 0.005
LEAST_LOST_BYTES: Final = 1000
LOST_RATIO: Final = 3.0
LEAST_LONG: Final = 2
LONG_RATIO: Final = 3.0
_RATE_WEIGHT: Final = 0.2
_FALLING_WEIGHT: Final = 0.02
"""Fewer calls are the consequence of waits; without other differences, they are still reported."""
_LOSS_WEIGHT: Final = 0.25
_OWNS: Final = 1.1
_STOOD_STILL: Final = 1.5
"""Brokers that wait for a stalled one delay calls as well: a coordinator waits for its follower."""
_ALIKE: Final = 0.5
_ALONE: Final = 0.3
"""What a subject counts for when the rest is as much slower, and when there is no rest."""
_OF_THE_WAY: Final = ("network", "transmission", ROUND_TRIP)
_OWNERS: Final = {
    "throttle_ms": "client", "network_ms": "client", "queue_ms": "client", "transmission_ms": "client",
    "replicas_ms": "acks", "broker_ms": "broker", "authentication_delay_ms": "client", "group_ms": "api",
    "errors": "client", "round_trip_ms": "client", "retransmitted": "client", "calls_per_second": "client",
}  # fmt: skip
"""Which kind of subject comes first where several carry the same."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the answer.

    `good`, `bad`: means per call in milliseconds, shares of calls (errors) or of bytes (retransmitted), or
    calls per second. `ratio`: bad to good, None where good is 0. `share`: of BAD's time, or of its calls.
    """

    subject_kind: str
    subject: str
    what: str
    good: float
    bad: float
    ratio: float | None
    call_ids: tuple[int, ...]
    good_interval: tuple[float, float]
    bad_interval: tuple[float, float]
    share: float
    score: float


@dataclass(slots=True)
class _Mean:
    """A mean with its standard error, of calls of several APIs."""

    calls: float = 0
    total: float = 0
    variance: float = 0
    """Of `total`."""

    def add(self, calls: float, mean: float, variance: float, of: float) -> None:
        """`calls` that took `mean` each, as `of` calls say; `variance` is that of one."""
        self.calls += calls
        self.total += calls * mean
        self.variance += calls * calls * variance / max(of, 1)

    @property
    def mean(self) -> float:
        return self.total / self.calls if self.calls else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        wide = Z * sqrt(self.variance) / self.calls if self.calls else inf
        return max(self.mean - wide, 0.0), self.mean + wide


Groups = Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]]
"""(kind, subject) -> API -> calls, timed, failed, and sum and sum of squares of each part."""


@dataclass(slots=True)
class _Pair:
    good: _Mean = field(default_factory=_Mean)
    bad: _Mean = field(default_factory=_Mean)

    @property
    def excess(self) -> float:
        return self.bad.total - self.good.total


def compare(
    good: tuple["duckdb.DuckDBPyConnection", Side], bad: tuple["duckdb.DuckDBPyConnection", Side]
) -> list[Difference]:
    """The differences, largest contribution first. Each side is a database and which of its calls.

    The sides' lengths are those of their captures, or their part of one; rates are compared where both are
    known.
    """
    before, after = read_groups(*good), read_groups(*bad)
    times = [*_times(before, after, parts_of_one=good[1].slowest)]
    found = [
        *times,
        *([] if good[1].slowest else _standstills(before, after, {each.what for each in times})),
        *_errors(before, after),
        *_rates(before, after, good[1].seconds, bad[1].seconds),
    ]
    if good[0] is not bad[0]:
        found += _losses(read_losses(good[0]), read_losses(bad[0]))
    found.sort(key=lambda each: (-each.score, KINDS.index(each.subject_kind), each.subject))
    return [_proven(each, *bad) for each in found]


def _times(before: Groups, after: Groups, *, parts_of_one: bool) -> Iterator[Difference]:
    total = sum(_sum(row, part) for row in after["all", ""].values() for part in PARTS)
    parts = (*PARTS, ROUND_TRIP)
    everything = {part: _pair(("all", ""), part, before, after) for part in parts}
    calls = [sum(row["timed"] for row in side["all", ""].values()) for side in (before, after)]
    for key in after:
        if key[0] == "all":
            continue
        for part in parts:
            if part in _OF_THE_WAY and key[0] not in ("client", "broker"):
                continue  # packets know no topics
            pair = _pair(key, part, before, after)
            if (
                not _differs(pair, LEAST_SLOW if parts_of_one else LEAST_CALLS)
                or pair.excess < LEAST_SHARE * total
            ):
                continue
            weight = _contrast(pair, everything[part])
            if weight == _ALONE and key[0] == "broker" == _OWNERS[f"{part}_ms"]:
                weight = 1 - (1 - _ALONE) * _lean(part, before, after, everything[part])
            if parts_of_one:
                weight = _measure_excess(key, before, after, calls)
            yield _difference(
                key, f"{part}_ms", pair, 1e6, pair.excess / max(total, pair.excess), weight=weight
            )


def _standstills(before: Groups, after: Groups, told: Container[str]) -> Iterator[Difference]:
    """Few long calls, without any in GOOD; `told`: differences that means already show."""
    total = sum(_sum(row, part) for row in after["all", ""].values() for part in PARTS)
    for part in STANDSTILLS:
        if f"{part}_ms" in told:
            continue
        good = _longest(before["all", ""], part)
        for key, rows in after.items():
            longest = _longest(rows, part)
            spent = sum(float(row[f"{part}_long_sum"] or 0) for row in rows.values())
            if (
                key[0] == "all"
                or (part == "network" and key[0] not in ("client", "broker"))
                or sum(row[f"{part}_long"] for row in rows.values()) < LEAST_LONG
                or longest < LONG_RATIO * good
                or spent < LEAST_SHARE * total
            ):
                continue
            pair = _Pair()
            pair.good.add(1, good, 0, 1)
            pair.bad.add(1, longest, 0, 1)
            yield _difference(key, f"{LONGEST}{part}_ms", pair, 1e6, spent / total, weight=_ALIKE)


def _longest(rows: Mapping[str, Mapping[str, Any]], part: str) -> float:
    return max((float(row[f"{part}_longest"] or 0) for row in rows.values()), default=0.0)


def _pair(key: tuple[str, str], part: str, before: Groups, after: Groups) -> _Pair:
    """A part of the time of a subject in BAD, and what GOOD says the same calls would have taken."""
    pair = _Pair()
    for api, row in after[key].items():
        pair.bad.add(row["timed"], *_moments(row, part), row["timed"])
        known = before.get(key, {}).get(api)
        if known is None or known["timed"] < LEAST_CALLS:
            # A few of its own calls prove little, but calls that were as slow before do not count as a
            # difference.
            both = [row for row in (known, before["all", ""].get(api)) if row is not None]
            known = max(both, key=lambda row: _moments(row, part)[0], default=None)
        if known is not None:
            pair.good.add(row["timed"], *_moments(known, part), known["timed"])
    return pair


def _moments(row: Mapping[str, Any], part: str) -> tuple[float, float]:
    """Mean and variance of a part over the calls of a group."""
    calls = row["timed"]
    if not calls:
        return 0.0, 0.0
    mean = _sum(row, part) / calls
    variance = max(float(row[f"{part}_squares"] or 0) / calls - mean * mean, 0.0)
    return mean, variance * calls / max(calls - 1, 1)


def _sum(row: Mapping[str, Any], part: str) -> float:
    return float(row[f"{part}_sum"] or 0)


def _differs(pair: _Pair, least: int) -> bool:
    # An API that GOOD does not have cannot be slower than in GOOD.
    return (
        pair.bad.calls >= least
        and pair.good.calls >= LEAST_SHARE * pair.bad.calls
        and pair.bad.mean - pair.good.mean >= LEAST_NS
        and pair.bad.mean >= LEAST_RATIO * pair.good.mean
        and pair.bad.interval[0] > pair.good.interval[1]
    )


def _contrast(pair: _Pair, everything: _Pair) -> float:
    """From 0.5, calls of others are as much slower, to 1: they are not."""
    apart = _apart(pair, everything)
    return _ALONE if apart is None else _ALIKE + (1 - _ALIKE) * apart


def _apart(pair: _Pair, everything: _Pair) -> float | None:
    """How much less others are slower: from 0, as much, to 1; None where there are none."""
    others = everything.bad.calls - pair.bad.calls
    if others < LEAST_CALLS:
        return None
    outside = max(everything.excess - pair.excess, 0.0) / others
    inside = pair.excess / pair.bad.calls
    return float(max(1 - outside / inside, 0.0))


def _lean(part: str, before: Groups, after: Groups, everything: _Pair) -> float:
    """Whether one client bears it: 0, all are as much slower, and what they have in common is the broker."""
    pairs = (_pair(key, part, before, after) for key in after if key[0] == "client")
    found = (_apart(pair, everything) for pair in pairs if pair.excess > 0)
    return max((apart for apart in found if apart is not None), default=0.0)


def _measure_excess(key: tuple[str, str], before: Groups, after: Groups, calls: Sequence[int]) -> float:
    """How much more of the slow calls than of the others are the subject's: 0 where it is as much."""
    shares = [
        sum(row["timed"] for row in side.get(key, {}).values()) / max(number, 1)
        for side, number in zip((before, after), calls, strict=True)
    ]
    more: float = max(1 - shares[0] / shares[1], 0.0)
    return more


def _errors(before: Groups, after: Groups) -> Iterator[Difference]:
    calls = sum(row["calls"] for row in after["all", ""].values())
    everything = _shares(("all", ""), before, after)
    for key in after:
        pair = _shares(key, before, after)
        failed = pair.excess
        if key[0] == "all" or failed < LEAST_FAILED or pair.bad.interval[0] <= pair.good.interval[1]:
            continue
        if pair.bad.mean >= LEAST_RATIO * pair.good.mean:
            yield _difference(key, "errors", pair, 1, failed / calls, weight=_contrast(pair, everything))


def _shares(key: tuple[str, str], before: Groups, after: Groups) -> _Pair:
    """Calls of a subject that failed, in BAD, and as many as GOOD says."""
    pair = _Pair()
    for api, row in after[key].items():
        pair.bad.add(row["calls"], *_odds(row), row["calls"])
        known = before.get(key, {}).get(api) or before["all", ""].get(api)
        if known is not None:
            pair.good.add(row["calls"], *_odds(known), known["calls"])
    return pair


def _odds(row: Mapping[str, Any]) -> tuple[float, float]:
    share = row["failed"] / row["calls"]
    # As if one more call had failed and one had not: zero failures in a few calls do not prove a rate of
    # zero.
    smooth = (row["failed"] + 1) / (row["calls"] + 2)
    return share, smooth * (1 - smooth)


def _rates(
    before: Groups, after: Groups, good_seconds: float | None, bad_seconds: float | None
) -> Iterator[Difference]:
    if not good_seconds or not bad_seconds:
        return
    calls = sum(row["calls"] for row in after["all", ""].values())
    for key in after.keys() & before.keys():
        pair = _Pair()
        for mean, groups, seconds in (
            (pair.good, before, good_seconds), (pair.bad, after, bad_seconds),
        ):  # fmt: skip
            number = sum(row["calls"] for row in groups[key].values())
            mean.add(seconds, number / seconds, number / seconds, seconds)
        low, high = sorted((pair.good, pair.bad), key=lambda each: each.mean)
        if key[0] == "all" or high.total < LEAST_CALLS * Z or high.mean < RATE_RATIO * low.mean:
            continue
        if high.interval[0] > low.interval[1]:
            share = abs(high.total - low.total) / max(calls, high.total)
            weight = _RATE_WEIGHT if low is pair.good else _FALLING_WEIGHT
            yield _difference(key, "calls_per_second", pair, 1, share, weight=weight)


def _losses(
    before: Mapping[str, tuple[int, int, int]], after: Mapping[str, tuple[int, int, int]]
) -> Iterator[Difference]:
    calls = sum(each[2] for each in after.values())
    usual = [sum(each[at] for each in before.values()) for at in (0, 1, 2)]
    for client, (sent, again, own) in after.items():
        was = before.get(client, tuple(usual))
        good, bad = (each[1] / each[0] if each[0] else 0.0 for each in (was, (sent, again, own)))
        if again >= LEAST_LOST_BYTES and bad >= LEAST_LOST and bad >= LOST_RATIO * good:
            pair = _Pair()
            pair.good.add(sent, good, 0, sent)
            pair.bad.add(sent, bad, 0, sent)
            share = own / max(calls, 1)
            yield _difference(("client", client), "retransmitted", pair, 1, share, weight=_LOSS_WEIGHT)


def _difference(
    key: tuple[str, str], what: str, pair: _Pair, unit: float, share: float, *, weight: float
) -> Difference:
    good, bad = pair.good.mean / unit, pair.bad.mean / unit
    part = what.removeprefix(LONGEST)
    owns = (_OWNS if part == what else _STOOD_STILL) if _OWNERS[part] == key[0] else 1.0
    return Difference(
        subject_kind=key[0], subject=key[1], what=what, good=good, bad=bad,
        ratio=bad / good if good else None, call_ids=(),
        good_interval=(pair.good.interval[0] / unit, pair.good.interval[1] / unit),
        bad_interval=(pair.bad.interval[0] / unit, pair.bad.interval[1] / unit),
        share=min(share, 1.0), score=min(share, 1.0) * weight * owns,
    )  # fmt: skip


def _proven(each: Difference, database: "duckdb.DuckDBPyConnection", side: Side) -> Difference:
    from dataclasses import replace

    ids = read_proofs(database, side, each.subject_kind, each.subject, each.what)
    return replace(each, call_ids=tuple(ids[:MOST_PROOFS]))


def place(database: "duckdb.DuckDBPyConnection") -> str | None:
    """Where most calls were captured, as connections say; None where that is not known."""
    rows = fetch(
        database,
        "select capture_point from connection where capture_point <> 'unknown'"
        " group by capture_point order by sum(calls) desc",
    )
    return str(rows[0]["capture_point"]) if rows else None
