"""The cluster in responses to clients: brokers from Metadata, supported versions from ApiVersions.

A cluster may have many partitions, and clients request them repeatedly: a response identical to an earlier
one
of the same broker is only counted until other news arrives, which updates its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import ApiRange
from kwsniff.layout.traits import BROKERS, VERSIONS
from kwsniff.tables.arrays import Bits, among, valid_rows, whole_numbers
from kwsniff.tables.compute import cast, filter_rows, take_rows
from kwsniff.tables.grouping import Groups
from kwsniff.tables.rows import pick
from kwsniff.timelines.decoded_messages import PLACE, Fields, list_elements, read_response
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget
from kwsniff.timelines.metadata.leaders import Leader, Leaders, Teller
from kwsniff.timelines.metadata.servers import Servers
from kwsniff.timelines.metadata.topic_names import TopicNames

MOST_BROKERS = 10_000
"""Maximum entries of brokers; further ones are left out."""
MOST_RANGES = 200_000
MOST_ANSWERS = 10_000
"""Maximum stored responses, for recognising repeats, and their rows; beyond that all are dropped."""
MOST_ANSWER_ROWS = 1_000_000
LONGEST_NAME = 256

COLUMNS: Final = (
    "call_id", "api_key", "api_version", "broker_address", "broker_port", "response_end_time", "capture",
    "client_id",
)  # fmt: skip

_ANSWER: Final = ("broker_address", "broker_port", "api_key", "api_version", "response")

_FORGOTTEN: Final = -1

Row = dict[str, Any]


@dataclass(slots=True)
class Answer:
    """A response that may repeat: the keys of its rows, its repeats since these were updated,
    and the last call with it (time in microseconds)."""

    news: int = _FORGOTTEN
    brokers: list[tuple[Any, ...]] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    times: int = 0
    call_id: int = 0
    time: int | None = None


class Cluster:
    """Tracks Metadata and ApiVersions responses; `brokers` and `ranges`: completed rows."""

    def __init__(
        self, names: TopicNames, leaders: Leaders, servers: Servers, catalog: Catalog, budget: MemoryBudget
    ) -> None:
        self._budget = budget
        self.brokers: list[Row] = []
        self.ranges: list[Row] = []
        self._names = names
        self._leaders = leaders
        self._servers = servers
        self._catalog = catalog
        self._roles = {
            key: api.traits.cluster
            for key, api in catalog.apis.items()
            if api.traits.cluster in (BROKERS, VERSIONS)
        }
        self._known: dict[tuple[Any, ...], Row] = {}
        self._offered: dict[tuple[Any, ...], None] = {}
        self._seen: dict[tuple[Any, ...], Answer] = {}
        """By what _ANSWER names, of the last a digest."""
        self._seen_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes calls in the order in which they ended."""
        chosen = among(whole_numbers(batch["api_key"], null=-1), self._roles)
        chosen &= valid_rows(batch["response"])
        if not chosen.any():
            return
        part = filter_rows(batch.select([*COLUMNS, PLACE, "response"]), chosen)
        every: Bits = np.ones(part.num_rows, np.bool_)
        answers = Groups(part, _ANSWER)
        labels = [
            (*label, blake2b(response, digest_size=16).digest()) for *label, response in answers.labels()
        ]
        seen = [self._seen.get(label) for label in labels]
        if self._repeat(part, answers, seen):
            return
        rows: list[tuple[Any, ...]] = []
        ends = pick(part, every, ("call_id", "response_end_time"))
        news = self._news
        for row, (number, (call_id, time)) in enumerate(zip(answers.numbers.tolist(), ends, strict=True)):
            found = seen[number]
            if found is not None and found.news == news:
                found.times += 1
                found.call_id, found.time = call_id, time
                continue
            rows = rows or list(pick(part, every, (*COLUMNS, PLACE, "response")))
            seen[number] = self._take(labels[number], rows[row])
            news = self._news

    def _repeat(self, part: pa.RecordBatch, answers: Groups, seen: Sequence["Answer | None"]) -> bool:
        """Whether all responses of a batch are repeats with the same meaning; if so, counts them."""
        if any(found is None or found.news != self._news for found in seen):
            return False
        lasts = np.zeros(len(seen), np.int64)
        lasts[answers.numbers] = np.arange(part.num_rows)  # later ones overwrite earlier ones
        ends = take_rows(part.select(["call_id", "response_end_time"]), lasts)
        ids = ends["call_id"].to_pylist()
        times = cast(ends["response_end_time"], pa.int64()).to_pylist()
        for found, count, call_id, time in zip(seen, answers.counts().tolist(), ids, times, strict=True):
            if found is not None:
                found.times += count
                found.call_id, found.time = call_id, time
        return True

    def _take(self, label: tuple[Any, ...], row: tuple[Any, ...]) -> "Answer":
        """A fully decoded response."""
        call_id, key, version, address, port, time, capture, client, place, response = row
        before = self._seen.pop(label, None)
        if before is not None:
            self._settle(before)
            self._count_seen(before, -1)
        found = Answer()
        if self._roles[key] == BROKERS:
            said = read_response(self._catalog, key, version, response)
            self._names.learn(said, place)
            self._servers.add_metadata((address, port), said)
            teller = Teller(call_id, capture, client, address, port, time, place)
            found.leaders = self._leaders.add_response(said, teller)
            found.brokers = self._take_metadata(said, call_id, time, capture)
        elif before is None and self._has_room_for_ranges():
            said = read_response(self._catalog, key, version, response)
            self._servers.add_versions((address, port), said)
            self._take_ranges(said, (call_id, address, port, time, capture))
        found.news = self._news
        rows = len(found.leaders) + len(found.brokers)
        if (
            len(self._seen) >= MOST_ANSWERS
            or self._seen_rows + rows > MOST_ANSWER_ROWS
            or self._budget.used + _bytes_of(found) > self._budget.most
        ):
            self._settle_all()
        self._count_seen(found, 1)
        self._seen[label] = found
        return found

    def _count_seen(self, answer: "Answer", times: int) -> None:
        self._seen_rows += times * (len(answer.leaders) + len(answer.brokers))
        self._budget.charge(times * _bytes_of(answer))

    @property
    def _news(self) -> int:
        """Increases with every change that may affect the meaning of a response."""
        return len(self._known) + self._leaders.news

    def _take_metadata(
        self, said: Fields, call_id: int, time: int | None, capture: str
    ) -> list[tuple[Any, ...]]:
        """The keys of the rows in the response."""
        moment = None if time is None else time * 1000
        keys = []
        for each in said.get("brokers") or ():
            if "port" not in each:
                continue  # the message broke off in it
            host, rack = each["host"], each.get("rack")
            key = (
                (said.get("cluster_id") or "")[:LONGEST_NAME] or None,
                *(each["node_id"], host[:LONGEST_NAME], each["port"], rack and rack[:LONGEST_NAME]),
            )
            row = self._known.get(key)
            if row is None:
                if not self._budget.admits(2 * RECORD, full=len(self._known) >= MOST_BROKERS):
                    continue
                named = dict(zip(("cluster_id", "node_id", "host", "port", "rack"), key, strict=True))
                row = self._known[key] = {"capture": capture, **named, "first_time": moment, "calls": 0}
                row["first_call_id"] = call_id
            keys.append(key)
            _touch(row, 1, call_id, time)
        return keys

    def _has_room_for_ranges(self) -> bool:
        """Whether to decode a response: one that can add no rows would take as long."""
        if len(self._offered) < MOST_RANGES and self._budget.used < self._budget.most:
            return True
        self._budget.left_out += 1
        return False

    def _take_ranges(self, said: Fields, seen: tuple[Any, ...]) -> None:
        call_id, address, port, time, capture = seen
        apis = self._apis_of(said)
        for each in said.get("api_keys") or ():
            if "max_version" not in each:
                continue
            api = each["api_key"], each["min_version"], each["max_version"]
            key = (address, port, *api)
            if key in self._offered:
                continue
            if not self._budget.admits(3 * SHORT, full=len(self._offered) >= MOST_RANGES):
                continue
            self._offered[key] = None
            known = apis.get(api[0])
            self.ranges.append(
                {
                    "capture": capture,
                    "broker_address": address,
                    "broker_port": port,
                    "api_key": api[0],
                    "api_name": known.name if known else None,
                    "min_version": api[1],
                    "max_version": api[2],
                    "first_time": None if time is None else time * 1000,
                    "call_id": call_id,
                }
            )

    def _apis_of(self, said: Fields) -> Mapping[int, ApiRange]:
        """The APIs of the server that gave this ApiVersions response."""
        catalog = self._catalog
        keys = [each["api_key"] for each in list_elements(said, "api_keys") if "max_version" in each]
        names = [each["name"] for each in list_elements(said, "supported_features") if "name" in each]
        number = catalog.products.shown_by((key for key in keys if key not in catalog.apis), names)
        return catalog.of_product(number).apis

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without rows. Take it before the state of the leaders."""
        self._settle_all()
        return self._known, self._offered

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self._known, self._offered = state

    def finish(self) -> None:
        """Ends: the known brokers and leaders become rows."""
        self._settle_all()
        self._leaders.finish()
        self.brokers += self._known.values()
        self._known.clear()

    def _settle_all(self) -> None:
        for answer in self._seen.values():
            self._settle(answer)
            self._count_seen(answer, -1)
            answer.news = _FORGOTTEN
        self._seen.clear()

    def _settle(self, answer: Answer) -> None:
        if answer.times:
            for key in answer.brokers:
                _touch(self._known[key], answer.times, answer.call_id, answer.time)
            for leader in answer.leaders:
                leader.touch(answer.times, answer.call_id, answer.time)


def _bytes_of(answer: Answer) -> int:
    return RECORD + 8 * len(answer.leaders) + SHORT * len(answer.brokers)


def _touch(row: Row, times: int, call_id: int, time: int | None) -> None:
    """Counts a repeat of a row; a late update does not revert a newer one."""
    row["calls"] += times
    moment = None if time is None else time * 1000
    before = row.get("last_time")
    if before is None or (moment is not None and (moment, call_id) >= (before, row["last_call_id"])):
        row["last_time"], row["last_call_id"] = moment, call_id
