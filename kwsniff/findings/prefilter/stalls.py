"""How long directions stalled, by cause, as rules about stalls ask for it."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import encode, numbers_of

_CAUSES: Final = {"nagle_ns": "nagle_delayed_ack", "window_ns": "receiver_window", "link_ns": "link_queue"}


def stalled_ns(batch: pa.RecordBatch) -> Mapping[str, int]:
    """Nanoseconds of the rows of `stalls`, by the name of the figure."""
    codes, words = encode(batch, "cause")
    took = numbers_of(batch, "duration_ns", null=0)
    return {
        name: int(np.sum(took[codes == words.index(cause)])) if cause in words else 0
        for name, cause in _CAUSES.items()
    }
