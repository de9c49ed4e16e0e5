"""Tracks transactions of producers, call by call in bounded memory: the rows of the transactions table.

A transaction begins with the first call that the coordinator or a partition leader counts to it:
AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, or a Produce (alone since KIP-890). It ends with the
response to EndTxn, with a fencing error, or with the InitProducerId of a producer that takes over its id,
which
makes the coordinator abort an open transaction (KIP-98).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.model import EVERY, Versions
from kwsniff.tables.arrays import valid_rows
from kwsniff.tables.rows import pick
from kwsniff.timelines.call_ids import note_call
from kwsniff.timelines.decoded_messages import read_request
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget

MOST_PRODUCERS = 10_000
"""Maximum transactional ids tracked at a time; beyond that, the one idle for longest is closed."""
MOST_TOPICS = 1_000
"""Maximum topics listed per transaction."""
DEFAULT_TIMEOUT_MS = 60_000
"""transaction.timeout.ms of Kafka's producer."""
LONGEST_NAME = 256
"""Maximum characters kept of an id or a topic's name."""

PRODUCE, INIT, ADD_PARTITIONS, END = "produce", "init", "add_partitions", "end"
_FENCED: Final = frozenset({47, 90})  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
_NO_SUCH_STATE: Final = 48  # INVALID_TXN_STATE
COLUMNS: Final = (
    "api_key", "api_version", "transactional_id", "producer_id", "producer_epoch", "client_address",
    "client_id", "request_time", "response_end_time", "error_code", "committed", "topics", "partition_count",
    "group_id", "record_count", "record_bytes", "capture", "call_id",
)  # fmt: skip

_NO_ROLE: Final = ("", EVERY)
Row = dict[str, Any]
Owner = tuple[str, str | None]


@dataclass(slots=True)
class Call:
    """One call with a transactional id; times in microseconds. `role`: of its API (layout/traits.py)."""

    role: str
    transactional_id: str
    producer_id: int | None
    producer_epoch: int | None
    client_address: str
    client_id: str | None
    begin: int | None
    end: int | None
    error_code: int | None
    committed: bool | None
    topics: Sequence[str] | None
    partition_count: int | None
    group_id: str | None
    record_count: int | None
    record_bytes: int | None
    capture: str
    call_id: int = 0
    timeout_ms: int | None = None

    @property
    def owner(self) -> Owner:
        """Identity of the caller, across connections."""
        return self.client_address, self.client_id


@dataclass(slots=True)
class Transaction:
    """One row in progress. `asked`: commit or abort, from EndTxn; `asked_at`: its time; times in
    microseconds."""

    capture: str
    owner: Owner
    begin: int | None = None
    end: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    outcome: str = "unknown"
    asked: bool | None = None
    asked_at: int | None = None
    topics: dict[str, None] = field(default_factory=dict)
    added: int = 0
    written: int = 0
    group_id: str | None = None
    calls: int = 0
    records: int = 0
    record_bytes: int = 0
    errors: int = 0
    error_code: int | None = None
    timeout_ms: int | None = None
    call_ids: list[int] = field(default_factory=list)

    def is_over_time(self, now: int | None) -> bool:
        """Whether the coordinator may have aborted it for its age, by its timeout or the default one."""
        timeout = DEFAULT_TIMEOUT_MS if self.timeout_ms is None else self.timeout_ms
        return self.begin is not None and now is not None and now - self.begin >= timeout * 1000

    def count(self, call: Call) -> None:
        """One more call."""
        self.calls += 1
        note_call(self.call_ids, call.call_id)
        if call.error_code:
            self.errors += 1
            self.error_code = self.error_code or call.error_code
        if call.producer_id is not None and call.producer_id >= 0:
            self.producer_id, self.producer_epoch = call.producer_id, call.producer_epoch
        if call.role == ADD_PARTITIONS:
            self.added += call.partition_count or 0
        elif call.role == PRODUCE:
            self.written = max(self.written, call.partition_count or 0)
            self.records += call.record_count or 0
            self.record_bytes += call.record_bytes or 0
        elif call.group_id is not None:
            self.group_id = call.group_id[:LONGEST_NAME]
        if call.role in (ADD_PARTITIONS, PRODUCE):
            for topic in call.topics or ():
                if len(self.topics) < MOST_TOPICS:
                    self.topics[topic[:LONGEST_NAME]] = None

    def is_after(self, call: Call) -> bool:
        """Whether the end of this transaction was requested after the call was made."""
        return call.begin is not None and self.asked_at is not None and call.begin < self.asked_at

    def row(self, transactional_id: str, error_names: Mapping[int, str]) -> Row:
        """The row of the table; times in nanoseconds."""
        took = None if self.begin is None or self.end is None else max(self.end - self.begin, 0)
        return {
            "capture": self.capture,
            "transactional_id": transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "client_id": self.owner[1],
            "begin_time": None if self.begin is None else self.begin * 1000,
            "end_time": None if self.end is None else self.end * 1000,
            "duration_ns": None if took is None else took * 1000,
            "timeout_ms": self.timeout_ms,
            "outcome": self.outcome,
            "topics": list(self.topics),
            "partition_count": self.added or self.written,
            "group_id": self.group_id,
            "calls": self.calls,
            "record_count": self.records,
            "record_bytes": self.record_bytes,
            "error_count": self.errors,
            "error_code": self.error_code,
            "error_name": None if self.error_code is None else error_names.get(self.error_code),
            "call_ids": self.call_ids,
        }


@dataclass(slots=True)
class Producer:
    """One transactional id: the open transaction, the previous one (for calls with a late row), and
    the last owner of the id."""

    open: Transaction | None = None
    last: Transaction | None = None
    owner: Owner | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    charged: int = 0
    """Bytes charged for it."""

    def size(self) -> int:
        """Approximate bytes that it takes."""
        known = [each for each in (self.open, self.last) if each]
        return RECORD + sum(2 * RECORD + 3 * SHORT * len(each.topics) for each in known)


def transaction_roles(catalog: Catalog) -> dict[int, tuple[str, Versions]]:
    """Api key -> role in a transaction, and the versions that have it."""
    traits = {key: api.traits for key, api in catalog.apis.items() if api.traits.transaction}
    return {key: (one.transaction, one.transaction_versions) for key, one in traits.items()}


class Transactions:
    """Tracks transactional ids through batches of api_calls; `rows`: completed transactions."""

    def __init__(
        self,
        error_names: Mapping[int, str],
        catalog: Catalog | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._budget = MemoryBudget() if budget is None else budget
        self._catalog = catalog or load_catalog()
        self._roles = transaction_roles(self._catalog)
        self.rows: list[Row] = []
        self.forgotten = 0
        """Transactional ids closed because of MOST_PRODUCERS or the memory limit."""
        self._error_names = error_names
        self._producers: dict[str, Producer] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes calls in the order in which they ended."""
        if not batch.num_rows or batch["transactional_id"].null_count == batch.num_rows:
            return
        columns = (*COLUMNS, "request")
        for key, version, *values, request in pick(batch, valid_rows(batch["transactional_id"]), columns):
            role, versions = self._roles.get(key, _NO_ROLE)
            if role and (version or 0) in versions:
                call = Call(role, *values)
                if call.transactional_id:
                    if request is not None and role == INIT:
                        said = read_request(self._catalog, key, version or 0, request)
                        call.timeout_ms = said.get("transaction_timeout_ms")
                    self.add_call(call)

    def add_call(self, call: Call) -> None:
        """One call with a transactional id."""
        name = call.transactional_id[:LONGEST_NAME]
        # Removed and reinserted, so that the last one is the most recent.
        producer = self._producers[name] = self._producers.pop(name, Producer())
        if call.role == INIT:
            self._take_over(name, producer, call)
        elif call.role == END:
            self._take_end(name, producer, call)
        else:
            self._take_part(name, producer, call)
        self._charge(producer, producer.size())
        while self._producers and (len(self._producers) > MOST_PRODUCERS or self._budget.is_full):
            oldest = next(iter(self._producers))
            self.forgotten += 1
            self._budget.left_out += 1
            self._give_up(oldest, self._producers.pop(oldest))

    def _charge(self, producer: Producer, size: int) -> None:
        self._budget.charge(size - producer.charged)
        producer.charged = size

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without `rows`."""
        return self.forgotten, self._producers

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self.forgotten, self._producers = state

    def finish(self) -> None:
        """Ends: transactions in progress become rows."""
        for name, producer in self._producers.items():
            self._give_up(name, producer)
        self._producers.clear()

    def _give_up(self, name: str, producer: Producer) -> None:
        if producer.open:
            producer.open.outcome = "open_at_end" if producer.open.asked is None else "unknown"
            self._close(name, producer, None)
        self._emit_last(name, producer)
        self._charge(producer, 0)

    def _emit_last(self, name: str, producer: Producer) -> None:
        if producer.last:
            self.rows.append(producer.last.row(name, self._error_names))
            producer.last = None

    def _close(self, name: str, producer: Producer, end: int | None) -> None:
        self._emit_last(name, producer)
        if producer.open:
            producer.open.end = end
        producer.last, producer.open = producer.open, None

    def _start(self, producer: Producer, call: Call, begin: int | None) -> Transaction:
        started = Transaction(call.capture, call.owner, begin)
        started.producer_id, started.producer_epoch = producer.producer_id, producer.producer_epoch
        started.timeout_ms = producer.timeout_ms
        producer.open = started
        return started

    def _take_over(self, name: str, producer: Producer, call: Call) -> None:
        if call.error_code != 0:
            return
        if producer.open:
            ended = "aborted" if producer.open.owner == call.owner else "fenced"
            producer.open.outcome = ended if producer.open.asked is None else "unknown"
            self._close(name, producer, call.end)
        producer.owner = call.owner
        producer.timeout_ms = call.timeout_ms
        producer.producer_id, producer.producer_epoch = call.producer_id, call.producer_epoch

    def _is_zombie(self, producer: Producer, call: Call) -> bool:
        """Whether the call is of a producer that lost its id to the current owner.

        It counts if its last transaction is still stored.
        """
        if call.error_code not in _FENCED or producer.owner in (None, call.owner):
            return False
        last = producer.last
        if last and last.owner == call.owner:
            last.count(call)
            return True
        return producer.open is not None and producer.open.owner != call.owner

    def _take_end(self, name: str, producer: Producer, call: Call) -> None:
        if self._is_zombie(producer, call):
            return
        last, opened = producer.last, producer.open
        if last and last.is_after(call):
            last.count(call)  # sent before the retry: a reset is accepted late
            return
        if opened is None and last and last.asked == call.committed:
            last.count(call)  # a retry: the coordinator repeats its response
            return
        opened = opened or self._start(producer, call, None)
        opened.count(call)
        opened.asked, opened.asked_at = bool(call.committed), call.begin
        if call.error_code == 0:
            opened.outcome = "committed" if call.committed else "aborted"
            self._close(name, producer, call.end)
        elif call.error_code in _FENCED or _is_gone(opened, call):
            opened.outcome = _why_refused(opened, call)
            self._close(name, producer, call.end)

    def _take_part(self, name: str, producer: Producer, call: Call) -> None:
        if self._is_zombie(producer, call):
            return
        for known in (producer.last, producer.open):
            if known and known.is_after(call):
                known.count(call)
                return
        if producer.open and producer.open.asked is not None:  # EndTxn got no response
            self._close(name, producer, None)
        opened = producer.open or self._start(producer, call, call.begin)
        opened.count(call)
        if call.error_code in _FENCED:
            opened.outcome = _why_refused(opened, call)
            self._close(name, producer, call.end)


def _is_gone(transaction: Transaction, call: Call) -> bool:
    """Whether a commit is rejected because its transaction had exceeded its timeout.

    Brokers since KIP-890 respond like this after the coordinator has aborted it (TransactionCoordinator).
    """
    return bool(call.error_code == _NO_SUCH_STATE and call.committed and transaction.is_over_time(call.begin))


def _why_refused(transaction: Transaction, call: Call) -> str:
    """No other producer took the id in the capture. Coordinators raise the epoch when they abort a
    transaction for
    its age (KIP-98, KIP-360); a younger one was fenced outside the capture."""
    return "timed_out" if transaction.is_over_time(call.begin) else "fenced"
