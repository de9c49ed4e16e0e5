"""Columns of whole numbers for tests of what reads them where Arrow keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.numbers import WholeColumn
from kwsniff.tables.arrays import column_of

NEVER = (1 << 63) - 1
ROWS = 700
"""More than are taken at once."""


def numbers(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def column(values: Sequence[int | None], type_: pa.DataType | None = None) -> WholeColumn:
    return column_of(pa.array(values, type_ or pa.int64()))
