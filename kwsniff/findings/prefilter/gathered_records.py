"""Records that clients let gather for long: bounds for the rule about delayed deliveries."""

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import column_in, numbers_of

OF_CALLS = ("min_bytes", "max_wait_ms", "record_count")
OF_BATCHES = ("first_timestamp", "max_timestamp")
_LONG_US = 1_000_000
_LONG_MS = 1_000
_UNKNOWN = np.iinfo(np.int64).min


def count_spread(batch: pa.RecordBatch) -> int:
    """Rows of record_batches whose records have timestamps a second apart or more."""
    first, last = (numbers_of(batch, name, null=_UNKNOWN) for name in OF_BATCHES)
    known = (first != _UNKNOWN) & (last != _UNKNOWN)
    return int(np.count_nonzero(last[known] - first[known] >= _LONG_US))


def count_gathering(batch: pa.RecordBatch) -> int:
    """Rows of api_calls with records, whose request lets the broker wait a second or more for more bytes."""
    if not column_in(batch, "min_bytes").sum_above(above=1):
        return 0
    least, wait, records = (numbers_of(batch, name, null=0) for name in OF_CALLS)
    return int(np.count_nonzero((least > 1) & (wait >= _LONG_MS) & (records > 0)))
