"""The metrics, and how rows update them. The dashboard and the alerts in docs/ use them."""

import platform
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.live.batches import Batches
from kwsniff.live.calls import Times, endpoint, times_of, topics_of, with_labels
from kwsniff.live.findings import CurrentFinding
from kwsniff.live.overdue_responses import OverdueResponses
from kwsniff.live.prometheus import Series
from kwsniff.live.rebalances import UnderWay
from kwsniff.live.session import Progress
from kwsniff.tables.arrays import Numbers, numbers, valid_rows, whole_numbers
from kwsniff.tables.grouping import Groups

_MOST_PARTITIONS: Final = 20_000
_DIMENSIONS: Final = {"brokers": "broker", "clients": "client", "topics": "topic", "apis": "api"}
_DECLARED: Final = (
    ("calls", "counter", "Calls that have ended, with any status.", "api", "client"),
    ("topic_calls", "counter", "Calls that have ended and name the topic.", "topic"),
    ("call_status", "counter", "Calls that have ended, by status.", "status"),
    ("error_codes", "counter", "Error codes in responses, at any depth.", "error", "api"),
    ("client_error_codes", "counter", "Error codes in responses, by client.", "error", "client"),
    ("broker_error_codes", "counter", "Error codes in responses, by broker.", "error", "broker"),
    ("request_bytes", "counter", "Bytes of requests, including the size prefix.", "client"),
    ("response_bytes", "counter", "Bytes of responses, including the size prefix.", "client"),
    ("topic_records", "counter", "Records produced to and fetched from a topic.", "topic", "api"),
    (
        "topic_record_bytes",
        "counter",
        "Bytes of record sets produced to and fetched from a topic, as on the wire.",
        "topic",
        "api",
    ),
    ("throttled_calls", "counter", "Calls with a throttle time in their response.", "client"),
    ("throttle_seconds", "counter", "Total throttle time.", "client"),
    (
        "fetched_lag_offsets",
        "gauge",
        "Lag of the latest fetches, summed over partitions.",
        "client",
        "topic",
    ),
    (
        "committed_lag_offsets",
        "gauge",
        "Lag of the latest commits, summed over partitions.",
        "group",
        "topic",
    ),
    ("api_latency_seconds", "histogram", "Latency of calls without deliberate waits, by API.", "api"),
    (
        "client_latency_seconds",
        "histogram",
        "Latency of calls without deliberate waits, by client.",
        "client",
    ),
    ("topic_latency_seconds", "histogram", "Latency of calls without deliberate waits, by topic.", "topic"),
    ("api_broker_seconds", "histogram", "Broker time of calls, by API.", "api"),
    ("broker_seconds", "histogram", "Broker time of calls, by broker.", "broker"),
    ("api_queue_seconds", "histogram", "Queue wait of calls, by API.", "api"),
    ("api_network_seconds", "histogram", "Network time of calls, by API.", "api"),
    ("rebalances", "counter", "Completed rebalances."),
    ("group_rebalancing_seconds", "gauge", "Duration of the rebalance in progress.", "group"),
    ("finding", "gauge", "1 for each current finding.", "finding", "subject"),
    ("waiting_calls", "gauge", "Requests in flight."),
    ("oldest_wait_seconds", "gauge", "Age of the oldest request in flight; a Fetch may wait for data."),
    *(
        (f"{name}_late_answers", "gauge", f"Overdue responses, by {name}.", name)
        for name in _DIMENSIONS.values()
    ),
    *(
        (f"{name}_late_seconds", "gauge", f"Age of the longest overdue response, by {name}.", name)
        for name in _DIMENSIONS.values()
    ),
    ("closed_connections", "counter", "Closed connections.", "protocol", "ending"),
    ("open_connections", "gauge", "Open connections.", "protocol"),
    (
        "connection_retransmitted_bytes",
        "counter",
        "Retransmitted bytes of closed connections.",
        "sender",
    ),
    ("refused_connections", "counter", "Refused connections.", "broker"),
    ("tcp_events", "counter", "TCP events such as retransmissions and resets.", "kind", "sender"),
    ("packets", "counter", "Packets read."),
    ("capture_bytes", "counter", "Capture bytes read."),
    ("kernel_dropped_packets", "counter", "Packets dropped by the kernel, as far as known."),
    ("kernel_drops_known", "gauge", "1 if the capture tool reports kernel drops during the capture."),
    (
        "build_info",
        "gauge",
        "1, with the version and the capture tool as labels.",
        "version",
        "python",
        "tool",
    ),
    ("process_cpu_seconds", "counter", "CPU time of this process."),
    ("process_resident_memory_bytes", "gauge", "Resident memory of this process."),
    ("process_open_fds", "gauge", "Open file descriptors of this process."),
    ("process_start_time_seconds", "gauge", "Start time of this process, since 1970."),
)


class Metrics:
    """Counts batches as they arrive; any thread may call `text`. `tool`: the capture tool."""

    def __init__(self, tool: str = "", now: Callable[[], float] = time.monotonic) -> None:
        from kwsniff import __version__

        self._turn = threading.Lock()
        self._series = Series(now)
        for name, kind, says, *labels in _DECLARED:
            self._series.declare(name, kind, says, *labels)
        for name in ("rebalances", "packets", "capture_bytes"):
            self._series.level(name, 0)
        self._series.show("build_info", {(__version__, platform.python_version(), tool): 1})
        self._lag: dict[str, dict[tuple[Any, ...], int]] = {}
        self._started = time.time()

    @property
    def names(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """All metrics by Prometheus name: type and labels."""
        found = {}
        for name, family in self._series.families.items():
            prefix = "" if name.startswith("process_") else "kwsniff_"
            suffix = "_total" if family.kind == "counter" else ""
            found[f"{prefix}{name}{suffix}"] = family.kind, family.labels
        return found

    def add(self, batches: Batches, progress: Progress) -> None:
        """Rows of one interval."""
        with self._turn:
            self._progress(progress)
            if "api_calls" in batches:
                self._add_calls(with_labels(batches["api_calls"]), times_of(batches))
            if "error_codes" in batches:
                self._add_errors(batches["error_codes"])
            if "partitions" in batches:
                self._add_partitions(batches["partitions"])
            if "commits" in batches:
                self._add_lag("committed_lag_offsets", batches["commits"], "group_id")
            if "connections" in batches:
                self._add_connections(batches["connections"])
            if "tcp_events" in batches:
                groups = Groups(batches["tcp_events"], ("kind", "sender"))
                for values, number in zip(groups.labels(), groups.counts().tolist(), strict=True):
                    self._series.count("tcp_events", number, *values)

    def hold(self, held: Sequence[CurrentFinding]) -> None:
        """Sets the current findings; earlier ones end."""
        with self._turn:
            self._series.show("finding", {(each.finding.finding, each.finding.subject): 1 for each in held})

    def show_overdue(self, overdue: OverdueResponses, under_way: Sequence[UnderWay], rebalances: int) -> None:
        """Sets overdue responses, rebalances in progress, and the number of completed rebalances."""
        with self._turn:
            for dimension, name in _DIMENSIONS.items():
                worst = overdue.worst(dimension)
                self._series.show(f"{name}_late_answers", {(each,): late.calls for each, late in worst})
                late = {(each,): late.oldest_ns / 1e9 for each, late in worst}
                self._series.show(f"{name}_late_seconds", late)
            lasts = {(each.group_id,): max(overdue.now - each.since, 0) / 1e9 for each in under_way}
            self._series.show("group_rebalancing_seconds", lasts)
            self._series.level("rebalances", rebalances)

    def connect(self, connections: pa.RecordBatch | None) -> None:
        """Sets the number of open connections."""
        with self._turn:
            found: dict[tuple[Any, ...], float] = {}
            if connections is not None:
                groups = Groups(connections, ("protocol", "ending"))
                for (protocol, end), number in zip(groups.labels(), groups.counts().tolist(), strict=True):
                    if end == "open":
                        found[(protocol,)] = number
            self._series.show("open_connections", found)

    def text(self, *, openmetrics: bool = False) -> str:
        """Everything, in Prometheus' text format 0.0.4 or as OpenMetrics."""
        with self._turn:
            self._process()
            return self._series.text(openmetrics=openmetrics)

    def _add_calls(self, batch: pa.RecordBatch, times: Times) -> None:
        series = self._series
        for name, columns in (("call_status", ("status",)), ("calls", ("api_name", "client_id"))):
            groups = Groups(batch, columns)
            for values, number in zip(groups.labels(), groups.counts().tolist(), strict=True):
                series.count(name, number, *values)
        for column, parts in (
            ("api_name", (("api_latency_seconds", times.active), ("api_broker_seconds", times.broker),
                          ("api_queue_seconds", times.queue), ("api_network_seconds", times.network))),
            ("client_id", (("client_latency_seconds", times.active),)),
        ):  # fmt: skip
            groups = Groups(batch, (column,))
            for name, taken in parts:
                for (value,), each in zip(groups.labels(), groups.split(_as_array(taken)), strict=True):
                    series.time(name, each, value)
        groups = Groups(batch, ("broker_address", "broker_port"))
        for party, each in zip(groups.labels(), groups.split(_as_array(times.broker)), strict=True):
            series.time("broker_seconds", each, endpoint(*party))
        self._add_traffic(batch)
        rows, places, words = topics_of(batch)
        latency = times.active[rows]
        for number in np.unique(places):
            chosen = latency[places == number]
            series.count("topic_calls", len(chosen), words[number])
            series.time("topic_latency_seconds", chosen[chosen >= 0], words[number])

    def _add_traffic(self, batch: pa.RecordBatch) -> None:
        groups = Groups(batch, ("client_id",))
        for name, column in (("request_bytes", "request_bytes"), ("response_bytes", "response_bytes")):
            for (client,), sizes in zip(groups.labels(), groups.split(batch[column]), strict=True):
                self._series.count(name, int(sizes.sum()), client)
        if "throttle_time_ms" in batch.schema.names:
            for (client,), told in zip(groups.labels(), groups.split(batch["throttle_time_ms"]), strict=True):
                if told.any():
                    self._series.count("throttled_calls", int((told > 0).sum()), client)
                    self._series.count("throttle_seconds", int(told[told > 0].sum()) / 1e3, client)

    def _add_errors(self, batch: pa.RecordBatch) -> None:
        columns = ("error_name", "error_code", "api_name", "client_id", "broker_address", "broker_port")
        groups = Groups(batch, columns)
        for values, number in zip(groups.labels(), groups.counts().tolist(), strict=True):
            name, code, api, client, address, port = values
            self._series.count("error_codes", number, name or code, api)
            self._series.count("client_error_codes", number, name or code, client)
            self._series.count("broker_error_codes", number, name or code, endpoint(address, port))

    def _add_partitions(self, batch: pa.RecordBatch) -> None:
        groups = Groups(batch, ("topic", "api_name"))
        for name, column in (("topic_records", "record_count"), ("topic_record_bytes", "record_bytes")):
            for values, found in zip(groups.labels(), groups.split(batch[column]), strict=True):
                if found.any():
                    self._series.count(name, int(found.sum()), *values)
        self._add_lag("fetched_lag_offsets", batch, "client_id")

    def _add_lag(self, name: str, batch: pa.RecordBatch, who: str) -> None:
        """The latest value of each partition counts."""
        chosen = valid_rows(batch["lag"])
        if not chosen.any():
            return
        latest = self._lag.setdefault(name, {})
        groups = Groups(batch, (who, "topic", "partition"))
        lag, rows = whole_numbers(batch["lag"], null=0), np.flatnonzero(chosen)
        last = np.full(len(groups.counts()), -1, np.int64)
        last[groups.numbers[rows]] = rows
        for key, row in zip(groups.labels(), last.tolist(), strict=True):
            if row >= 0:
                latest.pop(key, None)  # the last value is the most recent one
                latest[key] = int(lag[row])
        while len(latest) > _MOST_PARTITIONS:
            del latest[next(iter(latest))]
        sums: dict[tuple[Any, ...], float] = {}
        for (party, topic, _), behind in reversed(latest.items()):
            sums[party, topic] = sums.get((party, topic), 0) + behind
        self._series.show(name, sums)

    def _add_connections(self, batch: pa.RecordBatch) -> None:
        groups = Groups(batch, ("protocol", "ending"))
        for values, number in zip(groups.labels(), groups.counts().tolist(), strict=True):
            self._series.count("closed_connections", number, *values)
        for sender in ("client", "broker"):
            sent = whole_numbers(batch[f"{sender}_retransmitted_bytes"], null=0)
            self._series.count("connection_retransmitted_bytes", int(sent.sum()), sender)
        refused = np.array(batch["refused"].fill_null(False), np.bool_)
        groups = Groups(batch, ("broker_address", "broker_port"))
        for party, number in zip(groups.labels(), groups.counts(refused).tolist(), strict=True):
            if number:
                self._series.count("refused_connections", number, endpoint(*party))

    def _progress(self, progress: Progress) -> None:
        dropped = progress.dropped_by_kernel
        for name, value in (
            ("packets", progress.packets),
            ("capture_bytes", progress.capture_bytes),
            ("waiting_calls", progress.waiting_calls),
            ("oldest_wait_seconds", (progress.oldest_wait_ns or 0) / 1e9),
            ("kernel_dropped_packets", dropped),
            ("kernel_drops_known", int(dropped is not None)),
        ):
            self._series.level(name, value)

    def _process(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        self._series.level("process_cpu_seconds", round(used.ru_utime + used.ru_stime, 6))
        self._series.level("process_start_time_seconds", round(self._started, 3))
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self._series.level("process_resident_memory_bytes", pages * resource.getpagesize())
            self._series.level("process_open_fds", len(list(Path("/proc/self/fd").iterdir())))


def _as_array(taken: Numbers) -> pa.Array:
    return numbers(pa.int64(), taken, taken >= 0)
