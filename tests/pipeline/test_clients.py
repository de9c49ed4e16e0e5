"""Real clients' own measurements of their requests (client.tsv) against kwsniff's calls and latencies."""

from __future__ import annotations

import csv
import statistics
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.broker.clientlog import Measured, read
from tests.pipeline.compare import Row, decoded
from tests.traffic import tls

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = sorted(path.parent.name for path in CAPTURES.glob("*/client.tsv"))
CLOCKS_US = 100  # a capture has microseconds, and two clocks differ
# Their clock runs before the first byte is written. That of the others starts when the write has returned: on
# a busy machine, when the answer may be there already.
PUNCTUAL = {"Java", "franz-go", "kafka-python"}
MOST_PUNCTUAL_US, MOST_OTHERS_US = 10_000, 2_000  # what the client itself needs for a request, mostly
# What the Java client sends before its log of requests begins, while it authenticates.
UNLOGGED = {17, 36, 18}
FIELDS = ("client_id", "api_key", "api_version", "correlation_id", "request_bytes", "response_bytes")


@cache
def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))


@cache
def answered(name: str) -> list[Row]:
    facts = about(name)
    if "keylog" in facts and tls.missing() is not None:
        pytest.skip(str(tls.missing()))
    keys = CAPTURES / name / facts["keylog"] if "keylog" in facts else None
    rows = decoded(CAPTURES / name / facts["file"], tls_keylog=keys)["api_calls"]
    upstream = upstream_ports(name)
    return [row for row in rows if row["status"] == "answered" and row["client_port"] not in upstream]


def upstream_ports(name: str) -> set[int]:
    """From where a proxy sends what clients measured already."""
    if "proxied" not in about(name):
        return set()
    with (CAPTURES / name / about(name)["proxied"]).open(newline="") as file:
        return {int(row["upstream_port"]) for row in csv.DictReader(file, delimiter="\t")}


@cache
def measured(name: str) -> list[Measured]:
    return read(CAPTURES / name / "client.tsv")


def groups(name: str) -> Iterator[tuple[list[Measured], list[Row]]]:
    """Measured requests that say the same of themselves, but how long they took, and the calls that fit."""
    alike: dict[tuple[Any, ...], list[Measured]] = defaultdict(list)
    for one in measured(name):
        alike[tuple(getattr(one, field) for field in FIELDS)].append(one)
    for said, some in alike.items():
        known = [(field, value) for field, value in zip(FIELDS, said, strict=True) if value is not None]
        rows = answered(name)
        yield some, [row for row in rows if all(row[field] == value for field, value in known)]


def times(name: str) -> Iterator[tuple[Measured, float]]:
    """Each measured request and the microseconds of its call.

    Of some that look alike, the n-th longest is the n-th longest: if every call is shorter than its client
    says, these are too.
    """
    for some, rows in groups(name):
        if len(some) == len(rows) and all(row["latency_ns"] is not None for row in rows):
            lengths = sorted(row["latency_ns"] / 1000 for row in rows)
            yield from zip(sorted(some, key=lambda one: one.took_us), lengths, strict=True)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NAMES)
def test_every_request_that_a_client_measured_is_a_call(name: str) -> None:
    """With its client, API, version, correlation id, and sizes of both, as far as the client says."""
    missing = [one for some, rows in groups(name) for one in some[len(rows) :]]
    if about(name).get("partial"):  # the recording ended before the client did
        assert len(missing) < len(measured(name)) / 2
    else:
        assert missing == []
    assert len(measured(name)) > 5


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NAMES)
def test_calls_are_no_more_than_their_clients_measured(name: str) -> None:
    """But for the last ones, whose answers nobody waited for."""
    theirs = Counter((one.client_id, one.api_key) for one in measured(name))
    programs = {one.client_id: one.software for one in measured(name)}
    if set(programs) == {None}:
        theirs = Counter((None, one.api_key) for one in measured(name))
    for client, software in programs.items():
        rows = [row for row in answered(name) if client in (None, row["client_id"])]
        authenticates = software == "Java" and "SASL" in about(name)["broker"].get("protocol", "")
        ours = Counter((client, row["api_key"]) for row in rows)
        more = ours - theirs
        if authenticates:
            more = Counter({key: number for key, number in more.items() if key[1] not in UNLOGGED})
        connections = len({row["connection_id"] for row in rows})
        assert more.total() <= connections, more


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NAMES)
def test_no_call_takes_longer_than_its_client_says(name: str) -> None:
    late = [
        (one, length)
        for one, length in times(name)
        if one.software in PUNCTUAL and length > one.took_us + one.resolution_us + CLOCKS_US
    ]
    assert late == []


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NAMES)
def test_calls_take_nearly_as_long_as_their_clients_say(name: str) -> None:
    for punctual, most in ((True, MOST_PUNCTUAL_US), (False, MOST_OTHERS_US)):
        gaps = [one.took_us - length for one, length in times(name) if (one.software in PUNCTUAL) is punctual]
        if gaps:
            assert -most <= statistics.median(gaps) <= most


@pytest.mark.slow
def test_clients_whose_clock_starts_late_mostly_agree() -> None:
    gaps = [
        one.took_us + one.resolution_us + CLOCKS_US - length
        for name in NAMES
        if not about(name).get("keylog")
        for one, length in times(name)
        if one.software not in PUNCTUAL
    ]
    assert len(gaps) > 400
    assert sum(gap >= 0 for gap in gaps) > 0.85 * len(gaps)


@pytest.mark.slow
def test_most_clients_of_the_corpus_have_measured() -> None:
    programs = Counter(one.software for name in NAMES for one in measured(name))
    assert set(programs) == {"Java", "librdkafka", "kafka-python", "aiokafka", "KafkaJS", "franz-go"}
    assert programs.total() > 1000
    for name in NAMES:
        assert sum(1 for _ in times(name)) >= len(measured(name)) / 3
