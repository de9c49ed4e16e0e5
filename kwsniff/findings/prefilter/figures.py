"""Counts kept while rows pass: a rule is only evaluated if its figures are reached.

Most captures show next to nothing that is wrong. These figures are cheap, and each is a bound: what a rule
looks for is not there when they stay below what its `when` says. They decide no finding; the rules do.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.call_rates import CallRates
from kwsniff.findings.prefilter.client_rates import MOST_CLIENTS, Pace
from kwsniff.findings.prefilter.connection_counts import (
    FAR_US,
    count_connections,
    count_known,
    find_first_brokers,
)
from kwsniff.findings.prefilter.dictionaries import (
    codes_in,
    column_in,
    count_of,
    flags_of,
    has_long_texts,
    numbers_of,
    texts_in,
)
from kwsniff.findings.prefilter.gathered_records import OF_BATCHES, OF_CALLS, count_gathering, count_spread
from kwsniff.findings.prefilter.group_calls import GROUP_CALLS, count_group_calls
from kwsniff.findings.prefilter.lags import Lags
from kwsniff.findings.prefilter.offers import OF_RANGES, Offers
from kwsniff.findings.prefilter.partition_volumes import Plain, Volumes
from kwsniff.findings.prefilter.queues import OF_LATENCIES, Queues
from kwsniff.findings.prefilter.stalls import stalled_ns
from kwsniff.findings.prefilter.starting_offsets import OF_STARTS, StartingOffsets
from kwsniff.findings.prefilter.stuck_reads import StandingReads
from kwsniff.findings.prefilter.uncommitted import Uncommitted
from kwsniff.findings.rule import Rule, load_gates, rules_behind
from kwsniff.tables.arrays import distinct, is_short, texts
from kwsniff.tables.schema import TABLES

BATCH_ROWS: Final = 1 << 16
LONG_NS: Final = 1_000_000_000
"""What harm.py takes for long."""
_LONGEST_US: Final = 10**15
"""Longer times are damage; in nanoseconds they fit."""
_MALFORMED: Final = ("framing_lost", "undecodable_request")
_VIOLATIONS: Final = (
    "answered_out_of_order", "unexpected_response", "undecodable_response", "null_not_allowed",
    "aborted_out_of_order",
)  # fmt: skip


class Signs(TypedDict):
    """Whether a call has no whole response, whether one took LONG_NS, and all error codes."""

    unanswered: bool
    long: bool
    errors: frozenset[int]


class Figures:
    """Figures of the rows that `add` is shown, in bounded memory whatever their number."""

    def __init__(self, *, nameless: bool = False) -> None:
        """`nameless`: topics may get their names later, which `name_topics` then says."""
        self._sums: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self._errors: set[int] = set()
        self._pace = Pace()
        self._volumes = Volumes(nameless=nameless)
        self._plain = Plain()
        self._lags = Lags()
        self._reads = StandingReads()
        self._commits = CallRates("is_commit")
        self._questions = CallRates("is_question")
        self._offers = Offers()
        self._queues = Queues()
        self._uncommitted, self._starts = Uncommitted(), StartingOffsets()
        self.servers = False
        """Whether some calls are not those of clients."""
        self._unsure = False
        self._texts: dict[str, tuple[pa.Schema, Sequence[int]]] = {}
        self.long_texts = False
        """Whether some are too long for rows to be compared by them."""
        self._brokers: dict[str, tuple[int, str]] = {}
        """Client -> when it had its first connection, and with which broker."""

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Counts the rows of a batch; strings are dictionary-coded. Columns that are missing are null."""
        if batch.num_rows and (count := getattr(self, f"_add_{table}", None)):
            schema, texts = self._texts.get(table, (None, ()))
            if schema is None or schema != batch.schema:
                texts = texts_in(batch.schema)
                self._texts[table] = batch.schema, texts
            self.long_texts = self.long_texts or has_long_texts(batch, texts)
            count(batch)

    def distrust(self) -> None:
        """Topics were shown by id and have got names since: figures by topic are not the rules'."""
        self._unsure = True

    def distrust_order(self) -> None:
        """Rows of a connection may come in another order than that of time."""
        self._reads.in_order = False

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Topics were shown by id and have got these names (by id) since."""
        self._volumes.name_topics(names)
        self._lags.name_topics(names)
        self.long_texts |= not is_short(texts([*names.values()]))

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `add_up`: plain values, in bounded memory."""
        counted = self._list_counted()
        sums = {name: int(number) for name, number in self._sums.items()}
        flags = self.servers, self._unsure, self.long_texts
        return sums, self._errors, self._brokers, flags, [each.state() for each in counted]

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds the figures of other rows: it is as if `add` had been shown these, too."""
        sums, errors, brokers, (servers, unsure, long_texts), counted = state
        for name, number in sums.items():
            self._sums[name] = (max if name in _MOST else sum)((self._sums[name], number))
        self._errors |= errors
        self.servers |= servers
        self._unsure, self.long_texts = self._unsure | unsure, self.long_texts | long_texts
        self._note_brokers(brokers)
        for each, more in zip(self._list_counted(), counted, strict=True):
            each.merge(more)

    def _list_counted(self) -> Sequence[Any]:
        calls = self._pace, self._commits, self._questions
        rest = self._lags, self._reads, self._offers, self._queues, self._uncommitted, self._starts
        return *calls, self._volumes, self._plain, *rest

    def add_twins(self, number: int) -> None:
        """Connections that were added before it was known whose twins they are."""
        self._sums["twins"] += number
        self._sums["duplicates"] += number

    @property
    def twins(self) -> bool:
        """Whether connections are twins of others."""
        return self._sums["twins"] > 0

    @property
    def unnamed(self) -> bool:
        """Whether calls name no client."""
        return self._sums["unnamed"] > 0

    def sums(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Views that rules read, by name, and their columns; without those that only the rows can give."""
        if self._unsure or self.twins or self.unnamed:
            return {}
        paces = self._pace.sums()
        if len(self._brokers) <= MOST_CLIENTS:
            firsts = [broker for _, broker in self._brokers.values()]
            paces["client_broker"] = {"client": [*self._brokers], "broker": firsts}
        return {**self._volumes.sums(), **paces}

    def signs(self) -> Signs:
        """What harm calls may show."""
        unanswered, long = self._sums["unanswered"] + self._sums["cut_off"], self._sums["longest_call_ns"]
        return Signs(unanswered=unanswered > 0, long=long >= LONG_NS, errors=frozenset(self._errors))

    def total_ns(self) -> int | None:
        """What all calls took together; None where only the rows tell."""
        return None if self.twins else int(self._sums["total_ns"])

    def worth_asking(self) -> list[Rule]:
        """The rules that may find something."""
        figures = self.as_dict()
        return rules_behind(
            [gate for gate in load_gates() if any(self._holds(floors, figures) for floors in gate.when)]
        )

    def _holds(self, floors: Mapping[str, Any], figures: Mapping[str, float]) -> bool:
        for name, floor in floors.items():
            if name == "errors":
                held = not self._errors.isdisjoint(floor)
            elif name == "errors_beside":
                held = not self._errors <= set(floor)
            else:
                held = figures[name] >= floor
            if not held:
                return False
        return True

    def as_dict(self) -> dict[str, float]:
        """Figure -> number; infinite where only a rule can tell."""
        plain = self._plain.figures(sure=not self.twins)
        found = {**self._sums, **self._pace.figures(), **self._volumes.figures(), **plain}
        ends = 0 if self._sums["endless"] else int(self._sums["ends"])
        found["unpassed"] = self._pace.count_unpassed(ends or None)
        found |= {**self._reads.figures(), **self._starts.figures()}
        found["commit_rate"], found["refused_commits"] = self._commits.greatest(), self._commits.refused
        found["question_rate"], found["queued_calls"] = self._questions.greatest(), self._queues.greatest()
        silent = self._sums["silent_first"]
        found["left_behind_s"] = (self._sums["opened_last"] - (FAR_US - silent)) / 1e6 if silent else 0
        found["without_metadata"] = self._offers.without_metadata
        # The rule leaves out what servers and twins commit.
        found["lag_growth"] = self._lags.growth(sure=not (self._unsure or self.twins or self.servers))
        found["most_lag"], found["uncommitted"] = self._lags.most, self._uncommitted.most()
        found |= {name: getattr(self._volumes.shown, name) for name in _SHOWN}
        if self.unnamed:  # the rule knows clients by other calls of their connections
            found["refusing_brokers"] = float("inf")
        if self._unsure or self.twins:
            # Calls of twins count once, which only the rules know.
            found.update(dict.fromkeys((*self._pace.figures(), *self._volumes.figures()), float("inf")))
        return found

    def _most(self, name: str, values: "np.ndarray[Any, Any]") -> None:
        self._sums[name] = max(self._sums[name], int(values.max()))

    def _add_api_calls(self, batch: pa.RecordBatch) -> None:
        sums = self._sums
        sums["unanswered"] += count_of(batch, "status", "unanswered")
        sums["cut_off"] += count_of(batch, "reason", "cut_off_by_client")
        sums["unnamed"] += batch.num_rows - count_known(batch, "client_id")
        codes, callers = codes_in(batch, "caller")
        counts = {} if callers == ["client"] else {word: codes.count(n) for n, word in enumerate(callers)}
        sums["replicas"] += counts.get("replica", 0)
        self.servers |= any(number for word, number in counts.items() if word != "client")
        for name, number in count_group_calls(batch).items():
            sums[name] += number
        acks = column_in(batch, "acks")
        sums["waits_for_replicas"] += acks.count(-1)
        sums["unacknowledged"] += acks.count(0)
        sums["answered_acks_0"] += max(0, acks.count(0) - count_of(batch, "status", "no_response_expected"))
        sums["full_fetches"] += column_in(batch, "session_epoch").count(0)
        sums["read_committed"] += column_in(batch, "isolation_level").count(1)
        sums["throttled_ms"] += column_in(batch, "throttle_time_ms").sum_above(above=0)
        sums["gathering_fetches"] += count_gathering(batch)
        self._pace.add_calls(batch)
        self._commits.add(batch)
        self._questions.add(batch)

    def _add_error_codes(self, batch: pa.RecordBatch) -> None:
        self._errors.update(distinct(numbers_of(batch, "error_code", null=0).astype(np.int64)).tolist())
        self._pace.add_errors(batch)

    def _add_latencies(self, batch: pa.RecordBatch) -> None:
        broker = numbers_of(batch, "broker_ns", null=0)
        in_line = numbers_of(batch, "queue_wait_ns", null=0)
        self._most("longest_ns", broker + in_line)
        sums = self._sums
        sums["calls_in_line"] += np.count_nonzero(in_line >= 100_000_000)
        self._queues.add_calls(batch)
        totals = numbers_of(batch, "total_ns", null=0)
        self._most("longest_call_ns", totals)
        sums["total_ns"] += int(totals.sum(dtype=np.int64))
        sums["slow_calls"] += np.count_nonzero(broker >= 50_000_000)

    def _add_connections(self, batch: pa.RecordBatch) -> None:
        sums, most = count_connections(batch)
        for name, number in sums.items():
            self._sums[name] += number
        for name, number in most.items():
            self._sums[name] = max(self._sums[name], number)
        self._note_brokers(find_first_brokers(batch))
        self._volumes.shown.add_connections(batch)
        self._queues.add_connections(batch)

    def _note_brokers(self, brokers: Mapping[str, Sequence[Any]]) -> None:
        if len(self._brokers) <= MOST_CLIENTS:
            for client, (time, broker) in brokers.items():
                first = int(time), broker
                self._brokers[client] = min(first, self._brokers.get(client, first))

    def _add_partitions(self, batch: pa.RecordBatch) -> None:
        self._volumes.add(batch)
        self._reads.add(batch)
        self._starts.add(batch)
        self._most("log_start", numbers_of(batch, "log_start_offset", null=0))

    def _add_leaders(self, batch: pa.RecordBatch) -> None:
        self._volumes.shown.add_leaders(batch)
        if "replica_nodes" in batch.schema.names:
            leaders, nodes = batch["leader"].to_pylist(), batch["replica_nodes"].to_pylist()
            self._sums["not_preferred"] += sum(
                bool(n) and n[0] != each for each, n in zip(leaders, nodes, strict=True)
            )

    def _add_brokers(self, batch: pa.RecordBatch) -> None:
        self._volumes.shown.add_brokers(batch)
        self._sums["racked"] += count_known(batch, "rack")

    def _add_record_batches(self, batch: pa.RecordBatch) -> None:
        self._plain.add(batch)
        self._sums["spread_batches"] += count_spread(batch)

    def _add_groups(self, batch: pa.RecordBatch) -> None:
        self._sums["rebalances"] += batch.num_rows
        self._most("longest_rebalance_ns", numbers_of(batch, "duration_ns", null=0))
        first, last = (numbers_of(batch, name, null=0) for name in ("first_join_time", "last_join_time"))
        joined_us = np.where((first != 0) & (last != 0), last - first, 0)
        self._most("longest_rebalance_ns", np.minimum(joined_us, _LONGEST_US) * 1000)

    def _add_members(self, batch: pa.RecordBatch) -> None:
        self._sums["idle_members"] += np.count_nonzero(numbers_of(batch, "partition_count", null=-1) == 0)
        self._sums["expired_members"] += count_of(batch, "left_how", "session_expired")
        self._uncommitted.add_members(batch)

    def _add_transactions(self, batch: pa.RecordBatch) -> None:
        self._sums["transactions"] += batch.num_rows

    def _add_commits(self, batch: pa.RecordBatch) -> None:
        self._lags.add(batch)
        self._uncommitted.add_commits(batch)

    def _add_anomalies(self, batch: pa.RecordBatch) -> None:
        for name, anomalies in (("malformed", _MALFORMED), ("violations", _VIOLATIONS)):
            self._sums[name] += sum(count_of(batch, "name", each) for each in anomalies)

    def _add_captures(self, batch: pa.RecordBatch) -> None:
        dropped = numbers_of(batch, "dropped_by_kernel", null=0) > 0
        flawed = flags_of(batch, "truncated") | flags_of(batch, "damaged") | dropped
        self._sums["flawed_captures"] += np.count_nonzero(flawed)
        ends = numbers_of(batch, "last_time", null=0)
        self._most("ends", ends)
        self._sums["endless"] += np.count_nonzero(ends == 0)

    def _add_api_ranges(self, batch: pa.RecordBatch) -> None:
        self._offers.add(batch)

    def _add_stalls(self, batch: pa.RecordBatch) -> None:
        for name, took in stalled_ns(batch).items():
            self._sums[name] += took


_SHOWN: Final = ("unvisited", "shared", "moved_leaders")
_SUMS: Final = (
    "unanswered", "cut_off", "unnamed", "replicas", *GROUP_CALLS, "waits_for_replicas", "unacknowledged",
    "read_committed", "full_fetches", "throttled_ms", "total_ns", "longest_ns", "longest_call_ns",
    "log_start", "slow_calls", "calls_in_line", "longest_rebalance_ns", "ended", "refused",
    "unheard", "unshaken", "ends", "endless", "silent", "syn_retries", "client_resets", "odd_resets",
    "closed_by_broker", "closed_later", "alerts", "sealed", "one_sided", "greeted", "foreign", "proxied",
    "malformed", "violations", "zero_window_ns", "nagle_ns", "window_ns", "link_ns", "round_trip_ns",
    "retransmitted_bytes", "missing_bytes", "twins", "duplicates", "rebalances", "idle_members",
    "expired_members", "transactions", "flawed_captures", "rules_not_asked", "not_preferred", "racked",
    "left_open", "closed_large", "answered_acks_0", "gathering_fetches", "spread_batches",
    "opened_last", "silent_first",
)  # fmt: skip
_MOST: Final = (
    *("longest_ns", "longest_call_ns", "longest_rebalance_ns", "zero_window_ns", "round_trip_ns"),
    *("ends", "log_start", "opened_last", "silent_first"),
)
"""Those of _SUMS that are the greatest of something."""


def figures_of(files: Mapping[str, Sequence[Any]]) -> Figures:
    """Figures of parquet files, by table; only the columns that count are read."""
    import pyarrow.parquet as pq

    figures = Figures()
    if len(files.get("partitions", ())) > 1:  # of several files, any one may be earlier
        figures.distrust_order()
    for table, paths in files.items():
        wanted = COUNTED.get(table, ())
        for path in paths if wanted else ():
            told = pq.read_metadata(path)
            there = told.schema.to_arrow_schema().names  # of a list, the Parquet schema names its elements
            columns = [name for name in wanted if name in there]
            words = [name for name in columns if name in _WORDS[table]]
            with pq.ParquetFile(path, metadata=told, read_dictionary=words) as file:
                for group in range(file.num_row_groups):
                    # A batch over several groups would have the texts of all of them.
                    for batch in file.iter_batches(BATCH_ROWS, [group], columns=columns, use_threads=False):
                        figures.add(table, batch)
    return figures


_WORDS: Final = {
    name: {column.name for column in table.columns if column.type == "string"}
    for name, table in TABLES.items()
}
COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "api_calls": (
        "acks", "reason", "isolation_level", "session_epoch", "throttle_time_ms", "generation", "error_code",
        *dict.fromkeys((*Pace.OF_CALLS, *OF_CALLS)),
    ),
    "error_codes": tuple(dict.fromkeys(("error_code", *Pace.OF_ERRORS, "topic", "error_message"))),
    "latencies": ("broker_ns", "queue_wait_ns", "total_ns", *OF_LATENCIES),
    "connections": tuple(column.name for column in TABLES["connections"].columns),
    "partitions": tuple(
        sorted({"log_start_offset", *Volumes.OF_PARTITIONS, *StandingReads.OF_PARTITIONS, *OF_STARTS})
    ),
    "leaders": ("topic", "partition", "leader", "replica_nodes"),
    "brokers": ("node_id", "host", "port", "rack"),
    "record_batches": (*Plain.OF_BATCHES, *OF_BATCHES), "transactions": ("transactional_id",),
    "groups": ("group_id", "duration_ns", "first_join_time", "last_join_time"),
    "members": ("partition_count", *Uncommitted.OF_MEMBERS), "commits": Lags.OF_COMMITS,
    "api_ranges": OF_RANGES, "anomalies": ("name",), "stalls": ("cause", "duration_ns"),
    "captures": ("truncated", "damaged", "dropped_by_kernel", "last_time"),
}  # fmt: skip
"""The columns that are looked at, by table."""
