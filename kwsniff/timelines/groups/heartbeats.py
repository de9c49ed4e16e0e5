"""Removes repeated heartbeats: most calls of groups are repeats, and the first and the last suffice.

Between two other calls of a group, heartbeats in between add nothing: they show that a member was alive, as
the later one does. The rows of timelines are the same without them.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import among, numbers, valid_rows, whole_numbers
from kwsniff.tables.compute import dictionary_encode, filter_rows
from kwsniff.tables.grouping import Groups
from kwsniff.timelines.groups.rebalances import FENCED_INSTANCE_ID, HEARTBEAT, UNKNOWN_MEMBER_ID, group_roles

_SAYS: Final = (
    "api_key", "group_id", "group_instance_id", "member_id", "client_id", "client_address", "generation",
    "error_code", "capture",
)  # fmt: skip
_END_MEMBERSHIPS: Final = (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)


def without_repeats(batch: pa.RecordBatch, catalog: Catalog) -> pa.RecordBatch:
    """Noted calls, in the order in which they ended, without redundant heartbeats."""
    roles = group_roles(catalog)
    keys = whole_numbers(batch["api_key"], null=-1)
    beats = among(keys, (key for key, role in roles.items() if role == HEARTBEAT))
    beats &= ~valid_rows(batch["request"]) & valid_rows(batch["request_time"])
    beats &= ~among(whole_numbers(batch["error_code"], null=0), _END_MEMBERSHIPS)
    if np.count_nonzero(beats) < 2:
        return batch
    others = among(keys, roles) & ~beats
    rows = np.flatnonzero(beats)
    alike = Groups(filter_rows(batch.select(list(_SAYS)), beats), _SAYS).numbers.astype(np.int64)
    alike += np.cumsum(others)[rows] * (alike.max() + 1)
    which = whole_numbers(dictionary_encode(numbers(pa.int64(), alike)).indices, null=0)
    telling = ~beats
    for order in (rows, rows[::-1]):
        ends = np.zeros(which.max() + 1, np.int64)
        ends[which if order is rows else which[::-1]] = order  # later ones overwrite earlier ones
        telling[ends] = True
    return batch if telling.all() else filter_rows(batch, telling)
