"""Arrow's compute functions, without their import time.

`pyarrow.compute`, and every array or batch method that imports it, builds Python functions with help texts
for
all of Arrow's functions, which takes an eighth of the time of a small capture. The functions here call a
lower-level module.
"""

from typing import Any

import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, flags, numbers

try:
    from pyarrow._compute import CastOptions, call_function
except ImportError:  # may be renamed
    from pyarrow.compute import CastOptions, call_function


def filter_rows(rows: Any, chosen: Bits) -> Any:
    """The selected rows of a batch, a table or an array."""
    return call_function("filter", [rows, flags(chosen)])


def take_rows(rows: Any, places: Numbers, valid: Bits | None = None) -> Any:
    """The rows at these places, in their order; null where not `valid`."""
    return call_function("take", [rows, numbers(pa.int64(), places.astype("i8", copy=False), valid)])


def dictionary_encode(array: pa.Array) -> pa.DictionaryArray:
    """A dictionary-encoded array, with values in the order of first appearance."""
    return call_function("dictionary_encode", [array])


def cast(array: Any, type_: pa.DataType) -> Any:
    """An array in another type. Raises pyarrow's ArrowInvalid for values out of range."""
    return call_function("cast", [array], CastOptions.safe(type_))
