"""What a run says of rebalances, transactions, throttling and the network, added up in bounded memory."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.rows import pick

MOST_NAMES = 10_000
"""Groups, transactional ids, throttled clients that are counted one by one; more are counted together."""
OTHERS: Final = "(others)"

_TRANSPORT: Final = (
    "client_bytes", "broker_bytes", "client_retransmitted_bytes", "broker_retransmitted_bytes",
    "client_out_of_order", "broker_out_of_order", "client_missing_bytes", "broker_missing_bytes",
    "client_zero_window_ns", "broker_zero_window_ns",
)  # fmt: skip


@dataclass(slots=True)
class Spans:
    """Rebalances of a group, or transactions of a producer: how many, how long, by reason or outcome."""

    count: int = 0
    longest: int = 0
    total: int = 0
    words: Counter[str] = field(default_factory=Counter)

    def add(self, duration: int | None, word: str) -> None:
        """One more."""
        self.count += 1
        self.words[word] += 1
        if duration is not None:
            self.longest = max(self.longest, duration)
            self.total += duration


_TRIPS = ("client_address", "round_trip_ns", "client_round_trip_ns", "broker_round_trip_ns")


class Trouble:
    """Counts what `add` is shown. Rows are batches in the coded schema."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], Spans] = {}
        self._transactions: dict[str, Spans] = {}
        self._throttled: dict[tuple[str | None, str | None], Spans] = {}
        self._transport: Counter[str] = Counter()
        self._capture_points: Counter[str] = Counter()
        self._farthest: tuple[int, str | None] = 0, None

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Counts the rows of a batch."""
        everything = np.ones(batch.num_rows, np.bool_)
        if table == "groups":
            for group, kind, took, why in pick(
                batch, everything, ("group_id", "kind", "duration_ns", "reason")
            ):
                _spans(self._groups, (group, kind)).add(took, why)
        elif table == "transactions":
            for name, took, how in pick(batch, everything, ("transactional_id", "duration_ns", "outcome")):
                _spans(self._transactions, name).add(took, how)
        elif table == "api_calls":
            throttled = whole_numbers(batch["throttle_time_ms"], null=0) > 0
            for client, api, held in pick(batch, throttled, ("client_id", "api_name", "throttle_time_ms")):
                _spans(self._throttled, (client, api)).add(held * 1_000_000, "throttled")
        elif table == "connections":
            for column in _TRANSPORT:
                self._transport[column] += int(whole_numbers(batch[column], null=0).sum())
            with_calls = whole_numbers(batch["calls"], null=0) > 0
            self._capture_points.update(
                capture_point for (capture_point,) in pick(batch, with_calls, ("capture_point",))
            )
            for address, least, there, back in pick(batch, with_calls, _TRIPS):
                # The handshake's may be held up; of all the others, the least of each half is kept.
                trip = least if there is None or back is None else min(there + back, least or there + back)
                if trip is not None and trip > self._farthest[0]:
                    self._farthest = trip, address

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what took longest, or occurs most, first."""
        groups = [
            {
                "group_id": group,
                "kind": kind,
                "rebalances": spans.count,
                **_times(spans),
                "reasons": spans.words,
            }
            for (group, kind), spans in _rank(self._groups)
        ]
        transactions = [
            {"transactional_id": name, "transactions": spans.count, **_times(spans), "outcomes": spans.words}
            for name, spans in _rank(self._transactions)
        ]
        throttling = [
            {
                "client_id": client,
                "api_name": api,
                "calls": spans.count,
                "throttle_time_ns": spans.total,
                "max_throttle_time_ns": spans.longest,
            }
            for (client, api), spans in sorted(self._throttled.items(), key=lambda item: -item[1].total)
        ]
        transport: dict[str, Any] = {name: self._transport[name] for name in _TRANSPORT}
        transport["farthest_client"], transport["max_round_trip_ns"] = self._farthest[1], self._farthest[0]
        return {
            "groups": groups,
            "transactions": transactions,
            "throttling": throttling,
            "transport": {**transport, "capture_points": dict(self._capture_points.most_common())},
        }


def _times(spans: Spans) -> dict[str, Any]:
    return {"max_duration_ns": spans.longest, "total_duration_ns": spans.total}


def _spans(found: dict[Any, Spans], key: Any) -> Spans:
    if key not in found and len(found) >= MOST_NAMES:
        key = tuple(OTHERS for _ in key) if isinstance(key, tuple) else OTHERS
    return found.setdefault(key, Spans())


def _rank(found: Mapping[Any, Spans]) -> list[tuple[Any, Spans]]:
    return sorted(found.items(), key=lambda item: (-item[1].total, -item[1].count))
