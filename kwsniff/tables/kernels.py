"""Arrow's own functions over arrays and batches, without what loading them takes.

`pyarrow.compute`, and whatever method of an array or batch leads to it, makes Python functions with texts of
help of all that Arrow has: an eighth of the time that a small capture takes. What calls Arrow stands in a
module below it.
"""

from typing import Any

import pyarrow as pa

from kwsniff.tables.arrays import Bits, Numbers, flags, numbers

try:
    from pyarrow._compute import CastOptions, call_function
except ImportError:  # it has another name some day
    from pyarrow.compute import CastOptions, call_function


def kept(rows: Any, chosen: Bits) -> Any:
    """The chosen ones of a batch, a table or an array."""
    return call_function("filter", [rows, flags(chosen)])


def taken(rows: Any, places: Numbers, valid: Bits | None = None) -> Any:
    """The rows at these places, in their order; null where not `valid`."""
    return call_function("take", [rows, numbers(pa.int64(), places.astype("i8", copy=False), valid)])


def encoded(array: pa.Array) -> pa.DictionaryArray:
    """An array with its distinct values apart, in the order in which they come."""
    return call_function("dictionary_encode", [array])


def cast(array: Any, type_: pa.DataType) -> Any:
    """An array in another type. Raises pyarrow's ArrowInvalid for values that it does not hold."""
    return call_function("cast", [array], CastOptions.safe(type_))
