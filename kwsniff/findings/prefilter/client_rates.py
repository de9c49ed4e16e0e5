"""Request rates and pauses of clients: sums and bounds for the rules about storms and silence."""

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.call_sums import FETCH, METADATA, OTHER, PRODUCE, TICK_US, CallSums
from kwsniff.findings.prefilter.dictionaries import (
    Numbers,
    as_bytes,
    codes_in,
    encode,
    from_bytes,
    numbers_of,
)
from kwsniff.tables.arrays import distinct

MOST_CLIENTS: Final = 10_000
_MOST_MARKS: Final = 1 << 21
_NOT_LEADER: Final = (6, 74, 75)
_SEVERAL: Final = 2
"""Brokers that `leader_flaps` asks for."""
LASTING: Final = (
    1, 3, 5, 6, 14, 15, 16, 17, 22, 25, 27, 35, 36, 41, 46, 51, 54, 55, 70, 71, 72, 74, 75, 78, 79, 84, 85,
    88, 100, 106, 113, 117, 122, 123,
)  # fmt: skip
"""Errors of normal work, which `persistent_error` names where they last."""
_NO_HARM: Final = (36, 72, 84, 85)
"""Those of LASTING that are never harm, whatever follows (shared_views/harm.sql)."""
_PASSES_US: Final = 10_000_000
"""How soon errors pass that pass soonest (causes.txt)."""
_LASTS_US: Final = 3_000_000
_LASTS_TIMES: Final = 3
_FASTEST: Final = 20
"""Metadata requests per second of a client that retries."""
_UNFETCHED_US: Final = 10_000_000
"""How long `consumer_stuck` lets a member send heartbeats without a Fetch."""
_UNSUPPORTED_VERSION: Final = 35
_NEVER: Final = np.iinfo(np.int64).max
_NOBODY: Final = np.full(1, -1, np.int64)
_NO_MARKS: Final = np.zeros(0, np.int64)
_TICK: Final = (1 << 40) - 1


class Pace:
    """Calls of clients (not of brokers among themselves), by client and kind of call.

    Infinite figures say that there are more clients, or moments, than are counted.
    """

    OF_CALLS = CallSums.COLUMNS
    OF_ERRORS = (
        "client_id", "client_address", "broker_address", "broker_port", "api_name", "error_code",
        "response_time",
    )  # fmt: skip

    def __init__(self) -> None:
        self._clients: dict[str | None, int] = {}
        self._sums = CallSums()
        self._moments = _Marks()
        self._asked = _Marks()
        self._spans: dict[tuple[int, int], tuple[int, int, int]] = {}
        """Client and error code -> number of these errors, their first and last time."""
        self._refusers: dict[int, set[tuple[str, int]]] = {}
        """Client -> brokers, two at most, that do not lead what it asked them for."""
        self._crowded = False
        self._outdated = False
        """Whether a broker did not know a version, where no other one is tried."""

    def add_calls(self, batch: pa.RecordBatch) -> None:
        """Counts rows of api_calls."""
        codes, words = codes_in(batch, "client_id")
        places, addresses = codes_in(batch, "client_address")
        nameless = codes.bounds(null=-1)[0] < 0
        numbers = self._lookup(words), self._lookup([*addresses, None]) if nameless else _NOBODY
        if self._crowded:
            return
        marks = self._sums.add(batch, (codes, places), numbers)
        self._moments.add(None if marks is None else marks[0])
        self._asked.add(None if marks is None else marks[1])

    def add_errors(self, batch: pa.RecordBatch) -> None:
        """Remembers between when and when each client got errors of normal work."""
        codes = numbers_of(batch, "error_code", null=0)
        rows = np.flatnonzero(np.isin(codes, LASTING))
        if not len(rows):
            return
        if (codes[rows] == _UNSUPPORTED_VERSION).any():
            apis, names = encode(batch, "api_name")
            falls_back = np.isin(
                apis, [names.index(api) for api in names_of("is_api_versions") if api in names]
            )
            self._outdated |= bool(((codes == _UNSUPPORTED_VERSION) & ~falls_back).any())
        clients = self._number_clients(batch)
        if self._crowded:
            return
        self._add_refusers(batch, clients, np.flatnonzero(np.isin(codes, _NOT_LEADER)))
        times = numbers_of(batch, "response_time", null=_NEVER)
        pairs = clients[rows] << 16 | codes[rows]
        for pair in distinct(pairs).tolist():
            mine = times[rows[pairs == pair]]
            mine = mine[mine != _NEVER]
            if len(mine):
                self._widen((pair >> 16, pair & 0xFFFF), len(mine), int(mine.min()), int(mine.max()))

    def _add_refusers(self, batch: pa.RecordBatch, clients: Numbers, rows: Numbers) -> None:
        if not len(rows):
            return
        places, hosts = encode(batch, "broker_address")
        ports = numbers_of(batch, "broker_port", null=0)
        hosts = [*hosts, ""]  # place -1
        brokers = (places[rows] % len(hosts)) << 16 | ports[rows]
        for pair in distinct(clients[rows] << 40 | brokers).tolist():
            self._note_refusers(pair >> 40, {(hosts[pair >> 16 & 0xFFFFFF], pair & 0xFFFF)})

    def _note_refusers(self, client: int, brokers: set[tuple[str, int]]) -> None:
        known = self._refusers.setdefault(client, set())
        if len(known) < _SEVERAL:
            known |= brokers

    def state(self) -> tuple[Any, ...] | None:
        """What was counted, for `add_up`; None where there are more clients than are counted."""
        if self._crowded:
            return None
        marks = self._moments.state(), self._asked.state()
        return [*self._clients], self._sums.state(), *marks, self._spans, self._refusers, self._outdated

    def merge(self, state: tuple[Any, ...] | None) -> None:
        """Adds what another one counted."""
        if state is None:
            self._crowded = True
            return
        clients, sums, moments, asked, spans, refusers, outdated = state
        self._outdated |= outdated
        numbers = self._lookup(clients)[: len(clients)]
        if self._crowded:
            return
        self._sums.merge(sums, numbers)
        self._moments.merge(moments, numbers)
        self._asked.merge(asked, numbers)
        for (client, code), (number, first, last) in spans.items():
            self._widen((int(numbers[client]), code), number, first, last)
        for client, brokers in refusers.items():
            self._note_refusers(int(numbers[client]), brokers)

    def figures(self) -> dict[str, float]:
        """See the rules' `when`; rates are per second."""
        if self._crowded or self._moments.crowded or self._asked.crowded:
            return dict.fromkeys(
                (
                    "lone_record_rate",
                    "empty_fetch_share",
                    "metadata_share",
                    "metadata_rate",
                    "unfetched",
                    "pauses",
                    "unasked",
                    "lasting",
                    "refusing_brokers",
                ),
                np.inf,
            )
        counts = self._sums.column("calls")
        ends = self._sums.column("last_time")
        spans = np.maximum((ends - self._sums.column("first_time")) / 1e6, 0.5)
        rates = counts / spans
        alls = counts.sum(axis=1)
        produce, fetch, metadata = counts[:, PRODUCE], counts[:, FETCH], counts[:, METADATA]
        asks = (metadata >= 3) & (metadata > 0.05 * alls)
        lone = self._sums.column("records")[:, PRODUCE] < 2 * produce
        empty = self._sums.column("empty")[:, FETCH]
        return {
            "lone_record_rate": _greatest(rates[lone & (produce >= 100), PRODUCE]),
            "empty_fetch_share": _greatest(
                (empty / np.maximum(fetch, 1))[(fetch >= 40) & (rates[:, FETCH] >= 20)]
            ),
            "metadata_share": _greatest((metadata / np.maximum(alls, 1))[metadata >= 20]),
            "metadata_rate": _greatest(rates[asks & (rates[:, METADATA] <= _FASTEST), METADATA]),
            "unfetched": int(
                np.count_nonzero((fetch > 0) & (ends[:, OTHER] - ends[:, FETCH] >= _UNFETCHED_US))
            ),
            "pauses": self._pauses(alls),
            "unasked": sum(self._is_unasked(client, *span) for client, span in self._find_misled().items()),
            "refusing_brokers": max(map(len, self._refusers.values()), default=0),
            "lasting": self._outdated + sum(starmap(_lasts, self._spans.values())),
        }

    def count_unpassed(self, ends: int | None) -> float:
        """Errors of normal work after which the capture lasts so long that they may not have passed, by
        client and code. `ends`: the last moment; None where it is not known."""
        if self._crowded:
            return np.inf
        firsts = [first for (_, code), (_, first, _) in self._spans.items() if code not in _NO_HARM]
        return sum(ends is None or ends - first > _PASSES_US for first in firsts)

    def sums(self) -> dict[str, Mapping[str, Sequence[Any]]]:
        """The views `call_sum` and `fetch_sum`, by column; none where clients are too many to be counted."""
        if self._crowded:
            return {}
        return {
            "call_sum": self._sums.rows(self._clients),
            "fetch_sum": self._sums.reads(self._clients),
        }

    def _widen(self, key: tuple[int, int], number: int, first: int, last: int) -> None:
        self._spans[key] = _widen(self._spans.get(key), (number, first, last))

    def _find_misled(self) -> dict[int, tuple[int, int, int]]:
        """Client -> number of errors that a broker does not lead, and their time range."""
        found: dict[int, tuple[int, int, int]] = {}
        for (client, code), span in self._spans.items():
            if code in _NOT_LEADER:
                found[client] = _widen(found.get(client), span)
        return found

    def _number_clients(self, batch: pa.RecordBatch) -> Numbers:
        """The number of each row's client: its name, else its address."""
        codes, words = encode(batch, "client_id")
        numbers = self._lookup(words)[codes]
        if not len(codes) or codes.min() >= 0:
            return numbers
        codes, words = encode(batch, "client_address")
        return np.where(numbers >= 0, numbers, self._lookup([*words, None])[codes])

    def _lookup(self, words: list[Any]) -> Numbers:
        known = self._clients
        found = [known.setdefault(word, len(known)) for word in words]
        self._crowded |= len(known) > MOST_CLIENTS
        if not self._crowded:
            self._sums.make_room(len(known))
        return np.array([*found, found[-1] if found and words[-1] is None else -1], np.int64)

    def _pauses(self, calls: Numbers) -> int:
        """Pauses of 2 s or more, up to the last call of all included, of clients with 50 calls or more."""
        clients, ticks = self._moments.sort()
        if not len(ticks):
            return 0
        later = np.append(ticks[1:], ticks.max())
        later[:-1][np.diff(clients) != 0] = ticks.max()
        return int(np.count_nonzero((later - ticks >= 4) & (calls[clients] >= 50)))

    def _is_unasked(self, client: int, number: int, first: int, last: int) -> bool:
        """Whether there may be 1 s without a Metadata request between two such errors."""
        if number < 3 or last - first < 1_000_000:
            return False
        clients, ticks = self._asked.sort()
        start, end = first // TICK_US, last // TICK_US
        asked = np.count_nonzero((clients == client) & (ticks > start) & (ticks < end))
        return bool(asked < end - start - 1)


def _widen(before: tuple[int, int, int] | None, span: tuple[int, int, int]) -> tuple[int, int, int]:
    number, first, last = before or (0, _NEVER, 0)
    return number + span[0], min(first, span[1]), max(last, span[2])


def _lasts(number: int, first: int, last: int) -> bool:
    return number >= _LASTS_TIMES and last - first >= _LASTS_US


class _Marks:
    """Which client did something in which tick of time."""

    def __init__(self) -> None:
        self._found: list[Numbers] = []
        self._number = 0
        self.crowded = False

    def add(self, marks: Numbers | None) -> None:
        """Keeps marks, client << 40 | tick; None: there are times that no clock has."""
        if marks is None:
            self.crowded = True
        elif len(marks) and not self.crowded:
            self._found.append(marks)
            self._number += len(marks)
            if self._number > _MOST_MARKS:
                self._found = [distinct(np.concatenate(self._found))]
                self._number = len(self._found[0])
                self.crowded = self._number > _MOST_MARKS // 2

    def state(self) -> bytes | None:
        """The marks, each once, for `add_up`."""
        if self.crowded:
            return None
        return as_bytes(distinct(np.concatenate([*self._found, _NO_MARKS])))

    def merge(self, state: bytes | None, clients: Numbers) -> None:
        """Keeps those of another one. `clients`: the numbers that its clients have here."""
        if state is None:
            self.add(None)
        else:
            marks = from_bytes(state)[0]
            self.add(clients[marks >> 40] << 40 | marks & _TICK)

    def sort(self) -> tuple[Numbers, Numbers]:
        """Clients and their ticks, in order."""
        found = distinct(np.concatenate([*self._found, _NO_MARKS]))
        return found >> 40, found & _TICK


def _greatest(values: Numbers) -> float:
    return float(values.max()) if len(values) else 0.0
