"""The cluster as clients are told: brokers from Metadata, versions offered from ApiVersions."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import BROKERS
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.rows import picked
from kwsniff.timelines.details import PLACE, Said, read_response
from kwsniff.timelines.leaders import Leaders, Teller
from kwsniff.timelines.topic_names import TopicNames

MOST_BROKERS = 10_000
"""Entries of brokers; what comes after is left out."""
MOST_RANGES = 200_000
LONGEST_NAME = 256

COLUMNS: Final = (
    "call_id", "api_key", "api_version", "broker_address", "broker_port", "response_end_time", "capture",
    "client_id",
)  # fmt: skip

Row = dict[str, Any]


class Cluster:
    """Follows what brokers say of themselves; `brokers` and `ranges` are rows that are over."""

    def __init__(self, names: TopicNames, leaders: Leaders, catalog: Catalog) -> None:
        self.brokers: list[Row] = []
        self.ranges: list[Row] = []
        self._names = names
        self._leaders = leaders
        self._catalog = catalog
        self._roles = {key: api.traits.cluster for key, api in catalog.apis.items() if api.traits.cluster}
        self._known: dict[tuple[Any, ...], Row] = {}
        self._offered: dict[tuple[Any, ...], None] = {}
        self._last: dict[tuple[str, int], bytes] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes calls in the order in which they ended."""
        chosen = np.isin(whole_numbers(batch["api_key"], null=-1), [*self._roles])
        for call_id, key, version, address, port, time, capture, client, place, response in picked(
            batch, chosen, (*COLUMNS, PLACE, "response")
        ):
            if response is None:
                continue
            if self._roles[key] == BROKERS:
                said = read_response(self._catalog, key, version, response)
                self._names.learn(said, place)
                self._leaders.take(response, said, Teller(call_id, capture, client, address, port, time))
                self._take_metadata(said, call_id, time, capture)
            elif self._last.get((address, port)) != response:
                if len(self._last) < MOST_BROKERS:
                    self._last[address, port] = response
                said = read_response(self._catalog, key, version, response)
                self._take_ranges(said, (call_id, address, port, time, capture))

    def _take_metadata(self, said: Said, call_id: int, time: int | None, capture: str) -> None:
        moment = None if time is None else time * 1000
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
                if len(self._known) >= MOST_BROKERS:
                    continue
                named = dict(zip(("cluster_id", "node_id", "host", "port", "rack"), key, strict=True))
                row = self._known[key] = {"capture": capture, **named, "first_time": moment, "calls": 0}
                row["first_call_id"] = call_id
            row["calls"] += 1
            row["last_time"], row["last_call_id"] = moment, call_id

    def _take_ranges(self, said: Said, seen: tuple[Any, ...]) -> None:
        call_id, address, port, time, capture = seen
        for each in said.get("api_keys") or ():
            if "max_version" not in each:
                continue
            api = each["api_key"], each["min_version"], each["max_version"]
            key = (address, port, *api)
            if key in self._offered or len(self._offered) >= MOST_RANGES:
                continue
            self._offered[key] = None
            known = self._catalog.apis.get(api[0])
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

    def state(self) -> tuple[Any, ...]:
        """What is followed, for `resume`; rows are not part of it."""
        return self._known, self._offered, self._last

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        self._known, self._offered, self._last = state

    def finish(self) -> None:
        """No more calls come: what is known of brokers becomes rows."""
        self.brokers += self._known.values()
        self._known.clear()
