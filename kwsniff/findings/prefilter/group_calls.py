"""Members that leave or beat, and fetches of share groups, counted per batch of calls."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import codes_in, encode, numbers_of

GROUP_CALLS: Final = {"leaves": "is_leave", "heartbeats": "is_heartbeat", "share_fetches": "is_share_fetch"}
"""Figure -> the purpose of its calls."""


def count_group_calls(batch: pa.RecordBatch) -> Mapping[str, int]:
    """Figures of rows of api_calls."""
    codes, apis = codes_in(batch, "api_name")
    found = {
        name: sum(codes.count(apis.index(api)) for api in names_of(purpose) if api in apis)
        for name, purpose in GROUP_CALLS.items()
    }
    epochs = [apis.index(api) for api in names_of("is_epoch_heartbeat") if api in apis]
    if epochs:
        left = numbers_of(batch, "generation", null=0) == -1
        apis_of, _ = encode(batch, "api_name")
        found["leaves"] += int(np.count_nonzero(left & np.isin(apis_of, epochs)))
    return found
