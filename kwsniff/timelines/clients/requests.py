"""What requests say of the settings of their client: which columns of api_calls, of which APIs."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import Traits
from kwsniff.layout.traits import ACQUIRED, BROKERS, COMMITTED, FETCHED, PRODUCED
from kwsniff.tables.arrays import Bits, Numbers, distinct, numbers, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import dictionary_encode, filter_rows


class Setting(NamedTuple):
    """A setting, its column in api_calls, and of which APIs; `beside`: a column that must not be null."""

    setting: str
    column: str
    purpose: Callable[[Traits], bool] | None = None
    beside: str | None = None


def _fetches(traits: Traits) -> bool:
    return traits.records in (FETCHED, ACQUIRED)


SETTINGS: Final = (
    Setting("software", "client_software_name"),
    Setting("software_version", "client_software_version"),
    Setting("caller", "caller"),
    Setting("protocol_type", "protocol_type"),
    Setting("group_id", "group_id", lambda traits: traits.group not in ("", "leave")),
    Setting("acks", "acks"),
    Setting("transactional_id", "transactional_id"),
    Setting(
        "transaction_timeout_ms",
        "timeout_ms",
        lambda traits: traits.transaction == "init",
        "transactional_id",
    ),
    Setting("request_timeout_ms", "timeout_ms", lambda traits: traits.records == PRODUCED),
    Setting("fetch_min_bytes", "min_bytes", _fetches),
    Setting("fetch_max_wait_ms", "max_wait_ms", _fetches),
    Setting("fetch_max_bytes", "max_bytes", _fetches),
    Setting("rack_id", "rack_id"),
    Setting("isolation_level", "isolation_level", _fetches),
    Setting("session_timeout_ms", "timeout_ms", lambda traits: traits.group == "join"),
)
"""`caller`, `protocol_type` and `group_id` say what a client does; its row has other columns."""

HEARTBEAT, COMMIT, METADATA = "heartbeat_interval_ms", "commit_interval_ms", "metadata_max_age_ms"
PERIODIC: Final[dict[str, Callable[[Traits], bool]]] = {
    HEARTBEAT: lambda traits: traits.group in ("heartbeat", "epoch"),
    COMMIT: lambda traits: traits.offsets == COMMITTED and not traits.transaction,
    METADATA: lambda traits: traits.cluster == BROKERS,
}
"""Interval -> the requests that come at it."""
METADATA_RESPONSES: Final = "metadata_responses"
"""Most clients count metadata.max.age.ms from the response, which may wait behind a long poll."""


def keys_of(catalog: Catalog, purpose: Callable[[Traits], bool]) -> frozenset[int]:
    """Keys of the APIs with a purpose."""
    return frozenset(key for key, api in catalog.apis.items() if purpose(api.traits))


def _encode(column: pa.Array, rows: Bits) -> tuple[list[Any], Numbers]:
    """The values of rows, which are not null, and which of them each row has; most columns have one."""
    if pa.types.is_dictionary(column.type):
        return words_of(column.dictionary), whole_numbers(column.indices, null=0)[rows]
    if pa.types.is_integer(column.type):
        values = whole_numbers(column, null=0)[rows]
        least = int(values.min())
        if least == values.max():
            return [least], np.zeros(len(values), np.int64)
        coded = dictionary_encode(numbers(pa.int64(), values.astype(np.int64, copy=False)))
    else:
        coded = dictionary_encode(filter_rows(column, rows))
    return words_of(coded.dictionary), whole_numbers(coded.indices, null=0)


def count_values(
    groups: Numbers, column: pa.Array, rows: Bits, counts: Numbers
) -> Iterator[tuple[int, Any, int]]:
    """Group, value and number of calls, of the selected rows where the column is not null; `counts`: calls
    that each row is for."""
    stored = column.indices if pa.types.is_dictionary(column.type) else column
    if stored.null_count == len(stored):
        return
    rows = rows & valid_rows(stored) if stored.null_count else rows
    if not rows.any():
        return
    words, codes = _encode(column, rows)
    pairs = groups[rows].astype(np.int64) * len(words) + codes
    found = distinct(pairs)
    summed = np.zeros(len(found), np.int64)
    np.add.at(summed, np.searchsorted(found, pairs), counts[rows])
    told, values = np.divmod(found, len(words))
    yield from zip(told.tolist(), map(words.__getitem__, values.tolist()), summed.tolist(), strict=True)
