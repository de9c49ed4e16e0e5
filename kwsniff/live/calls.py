"""Batches of api_calls for live figures: parts of latency, topics, names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.live.batches import Batches
from kwsniff.tables.arrays import Numbers, numbers, texts, whole_numbers, words_of
from kwsniff.timelines.waits.pending_rows import UNSETTLED

NO_NAME: Final = "(none)"
_FOLLOWER: Final = "{} (follower)"
_CONTROLLER: Final = "{} (controller)"
"""Requesters that fetch cluster metadata: controllers and brokers."""
_METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class Times:
    """Nanoseconds for each row of api_calls, -1 if unknown: latency without deliberate waits, and its
    parts."""

    active: Numbers
    broker: Numbers
    queue: Numbers
    network: Numbers

    def take(self, rows: Numbers) -> "Times":
        """The times of some rows."""
        return Times(self.active[rows], self.broker[rows], self.queue[rows], self.network[rows])


def times_of(batches: Batches) -> Times:
    """Values for the rows of api_calls in `batches`, from their latencies."""
    calls = batches["api_calls"]
    total = whole_numbers(calls["latency_ns"], null=-1)
    nothing = np.full(len(total), -1, np.int64)
    latencies = batches.get(UNSETTLED, batches.get("latencies"))
    if latencies is None:
        return Times(total, nothing, nothing, nothing)
    rows, theirs = _places(calls, latencies)
    active = total.copy()
    active[rows] -= whole_numbers(latencies["deliberate_wait_ns"], null=0)[theirs]
    parts = []
    for names in (
        ("broker_ns",),
        ("queue_wait_ns",),
        ("network_ns", "request_transmission_ns", "response_transmission_ns"),
    ):
        taken = nothing.copy()
        taken[rows] = sum(whole_numbers(latencies[name], null=0)[theirs] for name in names)
        parts.append(taken)
    return Times(active, *parts)


def _places(calls: pa.RecordBatch, latencies: pa.RecordBatch) -> tuple[Numbers, Numbers]:
    """Rows of api_calls that have a latency, and its row number."""
    asked = whole_numbers(calls["call_id"], null=0)
    ids = whole_numbers(latencies["call_id"], null=0)
    order = np.argsort(asked, kind="stable")
    places = np.searchsorted(asked[order], ids)
    theirs = np.flatnonzero(places < len(order))
    rows = order[places[theirs]]
    same = asked[rows] == ids[theirs]
    return rows[same], theirs[same]


def topics_of(batch: pa.RecordBatch) -> tuple[Numbers, Numbers, list[str]]:
    """For a batch of api_calls: for each topic of a call, a row number and an index into the names; and the
    names."""
    topics = batch["topics"]
    ends = np.frombuffer(topics.buffers()[1], np.int32)[topics.offset : topics.offset + len(topics) + 1]
    rows = np.repeat(np.arange(batch.num_rows), np.diff(ends))
    codes = whole_numbers(topics.values.indices, null=0)[ends[0] : ends[-1]]
    return rows, codes, words_of(topics.values.dictionary)


def with_labels(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; api_name distinguishes fetches of followers and of controllers from those of
    consumers."""
    column = batch["api_name"]
    words = words_of(column.dictionary)
    callers = words_of(batch["caller"].dictionary)
    fetches = [name for name in words if name in names_of("is_log_fetch")]
    if not fetches or not {"replica", "broker"} & set(callers):
        return batch
    fetch = fetches[0]
    codes = whole_numbers(column.indices, null=-1).astype(np.int32)
    asked = np.array([word in ("replica", "broker") for word in callers] + [False], np.bool_)
    inside = (codes == words.index(fetch)) & asked[whole_numbers(batch["caller"].indices, null=-1)]
    rows, places, topics = topics_of(batch)
    metadata = np.zeros(batch.num_rows, np.bool_)
    metadata[rows[np.array([topic == _METADATA_TOPIC for topic in topics], np.bool_)[places]]] = True
    codes[inside] = len(words)
    codes[inside & metadata] = len(words) + 1
    indices = numbers(pa.int32(), codes, codes >= 0)
    labels = pa.DictionaryArray.from_arrays(
        indices, texts([*words, _FOLLOWER.format(fetch), _CONTROLLER.format(fetch)]), safe=False
    )
    at = batch.schema.get_field_index("api_name")
    return batch.set_column(at, "api_name", labels)


def api_label(name: str, caller: str | None, topics: Sequence[str]) -> str:
    """The same of one call."""
    if name not in names_of("is_log_fetch") or caller not in ("replica", "broker"):
        return name
    return (_CONTROLLER if _METADATA_TOPIC in topics else _FOLLOWER).format(name)


def endpoint(address: str | None, port: int | None) -> str:
    """address:port; IPv6 in brackets."""
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
