"""Failures of connections, counted per batch: bounds for the rules about opening, ends and loss."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import Numbers, count_of, encode, flags_of, numbers_of

_ENDED: Final = ("fin", "reset", "reused")
_NOT_FOREIGN: Final = ("empty", "kafka", "tls", "undecided")
_FEW_CALLS: Final = 6
"""`calls` of `connection_churn`."""
_LARGE_BYTES: Final = 4096
"""Of a request that `cut_request` finds, at least."""
_SECOND_US: Final = 1_000_000
FAR_US: Final = 1 << 62
"""From which times are subtracted, so that the first one gives the greatest figure."""
_NEVER: Final = np.iinfo(np.int64).max


def count_known(batch: pa.RecordBatch, name: str) -> int:
    """Rows in which the column is not null."""
    place = batch.schema.get_field_index(name)
    return batch.num_rows - batch.column(place).null_count if place >= 0 else 0


def count_connections(batch: pa.RecordBatch) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Figures of rows of connections that add up, and those of which the greatest counts."""
    twins = count_known(batch, "twin_of")
    sums = {
        "refused": _number(flags_of(batch, "refused")),
        "silent": _number((_each(batch, "broker_packets") == 0) & (_each(batch, "client_bytes") == 0)),
        "syn_retries": _number(_each(batch, "syn_retries") > 0),
        "one_sided": _number((_each(batch, "client_packets") == 0) | (_each(batch, "broker_packets") == 0)),
        "proxied": count_known(batch, "proxy_header"),
        "twins": twins,
        "duplicates": twins + _number(_each(batch, "duplicate_packets") > 0),
        **_count_ends(batch),
        **_count_protocols(batch),
    }
    sides = ("client", "broker")
    for name in ("retransmitted_bytes", "missing_bytes"):
        sums[name] = sum(int(_each(batch, f"{side}_{name}").sum()) for side in sides)
    most = {
        name: max(int(_each(batch, each).max()) for each in (name, *(f"{side}_{name}" for side in sides)))
        for name in ("round_trip_ns", "zero_window_ns")
    }
    opened, ended = _each(batch, "first_time"), _each(batch, "last_time")
    left = ended[_has(batch, "ending", "open") & (ended > 0)]
    most["opened_last"] = int(opened.max())
    most["silent_first"] = FAR_US - int(left.min()) if left.size else 0
    return sums, most


def _count_ends(batch: pa.RecordBatch) -> Mapping[str, int]:
    by_broker = _has(batch, "closed_by", "broker")
    bare = _has(batch, "reset_by", "broker") & ~flags_of(batch, "reset_acknowledges")
    odd = (_each(batch, "reset_ttl_step") != 0) | (_each(batch, "reset_ident_step") > 64)
    later = _each(batch, "last_time") - _each(batch, "first_time") >= _SECOND_US
    calls, sent = _each(batch, "calls"), _each(batch, "client_bytes") + _each(batch, "client_missing_bytes")
    return {
        "ended": _number(_has(batch, "ending", *_ENDED)),
        "closed_by_broker": _number(by_broker),
        "left_open": _number(_has(batch, "ending", "open") & (calls > 0) & (calls <= _FEW_CALLS)),
        "closed_later": _number(by_broker & later),
        "closed_large": _number(by_broker & (sent > _LARGE_BYTES)),
        "unheard": _number(by_broker & (calls == 0)),
        "client_resets": count_of(batch, "reset_by", "client"),
        "odd_resets": _number(bare) + _number(odd),
    }


def _count_protocols(batch: pa.RecordBatch) -> Mapping[str, int]:
    greeted = flags_of(batch, "tls_hello")
    codes, words = encode(batch, "protocol")
    foreign = [place for place, word in enumerate(words) if word not in _NOT_FOREIGN]
    return {
        "alerts": count_known(batch, "tls_alert"),
        "sealed": count_of(batch, "protocol", "tls"),
        "greeted": _number(greeted),
        "unshaken": _number(greeted & ~_has(batch, "tls_handshake", "complete")),
        "foreign": _number(np.isin(codes, foreign)) + count_known(batch, "answered_in"),
    }


def _each(batch: pa.RecordBatch, name: str) -> Numbers:
    return numbers_of(batch, name, null=0)


def _has(batch: pa.RecordBatch, name: str, *wanted: str) -> "np.ndarray[Any, Any]":
    """Whether the column is one of these words."""
    codes, words = encode(batch, name)
    return np.isin(codes, [words.index(word) for word in wanted if word in words])


def _number(flags: "np.ndarray[Any, Any]") -> int:
    return int(np.count_nonzero(flags))


def find_first_brokers(batch: pa.RecordBatch) -> dict[str, tuple[int, str]]:
    """Client -> when it had its first connection (microseconds since 1970), and with which broker: of several
    ones the first by its text, as the view `client_broker` has it."""
    (ids, names), (places, addresses) = encode(batch, "client_id"), encode(batch, "client_address")
    hosts, texts = encode(batch, "broker_address")
    clients = np.where(ids >= 0, ids, places + len(names))
    ports = numbers_of(batch, "broker_port", null=0)
    times = numbers_of(batch, "first_time", null=_NEVER)
    known = [*names, *addresses]
    pairs = (clients * len(texts) + hosts) << 16 | ports
    order = np.lexsort((times, pairs))
    ordered = pairs[order]
    firsts = order[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]
    firsts = firsts[hosts[firsts] >= 0]
    found: dict[str, tuple[int, str]] = {}
    for pair, time in zip(pairs[firsts].tolist(), times[firsts].tolist(), strict=True):
        client, host = divmod(pair >> 16, len(texts))
        first = time, f"{texts[host]}:{pair & 0xFFFF}"
        found[known[client]] = min(first, found.get(known[client], first))
    return found
