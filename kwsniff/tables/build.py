"""Builds Arrow record batches from columns of the core, without copying values.

The core delivers a column as a tuple (kind, rows, nulls, validity or None, buffers...); see
kwsniff/core/columns/columns.pyx. Buffers become Arrow buffers unchanged. Only times are computed
(nanoseconds to microseconds, rounded down) and derived columns are looked up: one table access per row.
"""

import re
from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kwsniff.layout.spoken import api_names
from kwsniff.tables.arrays import bits, texts
from kwsniff.tables.column import Column
from kwsniff.tables.enums import DERIVED_ENUMS
from kwsniff.tables.schema import INNER, TABLES, coded_schema

if TYPE_CHECKING:
    from kwsniff.layout.catalog import Catalog

ColumnData = tuple[Any, ...]

_REPLACEMENT = re.compile("\ufffd".encode())
_FIXED = {"int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "bool": pa.bool_()}
_TIME = pa.timestamp("us", tz="UTC")


class Builder:
    """Makes record batches from the result of the core's `take()`. Has the lookup tables for derived
    columns."""

    def __init__(self, catalog: "Catalog", enums: Mapping[str, Sequence[str]]) -> None:
        self._catalog = catalog
        self._enums = {name: texts(names) for name, names in enums.items()}
        self._api_names = texts(api_names(catalog))
        self._errors = _ErrorNames(catalog)
        self._retriable = _Flags({code: error.retriable for code, error in catalog.errors.items()})
        self._schemas = _coded_schemas()

    def build(self, table: str, columns: Sequence[ColumnData]) -> pa.RecordBatch:
        """The rows of one `take()`, with the derived columns in their places."""
        given = iter(columns)
        arrays: dict[str, pa.Array] = {}
        for column in (TABLES | INNER)[table].own:
            if column.derived_from:
                arrays[column.name] = self._derive(
                    column, arrays[column.derived_from], arrays.get("api_name")
                )
            elif column.delivered:
                arrays[column.name] = self._array(next(given))
            else:
                arrays[column.name] = make_nulls(column, len(next(iter(arrays.values()))))
        if "error_message" in arrays:
            arrays["error_message"] = self._without_values(arrays["error_message"])
        return pa.RecordBatch.from_arrays(list(arrays.values()), schema=self._schemas[table])

    def _array(self, data: ColumnData) -> pa.Array:
        kind, rows, nulls, validity, *buffers = data
        mask = None if validity is None else pa.py_buffer(validity)
        if kind in _FIXED:
            return pa.Array.from_buffers(_FIXED[kind], rows, [mask, pa.py_buffer(buffers[0])], nulls)
        if kind == "time":
            micros = np.frombuffer(buffers[0], np.int64, rows) // 1000
            return pa.Array.from_buffers(_TIME, rows, [mask, pa.py_buffer(micros)], nulls)
        if kind == "string":
            return _strings(rows, nulls, mask, buffers)
        if kind == "binary":
            return _binaries(rows, nulls, mask, buffers)
        if kind == "strings":
            ends, *inner = buffers
            words = _strings(int(np.frombuffer(ends, np.int32, rows + 1)[-1]), 0, None, inner)
            type_ = pa.list_(pa.field("element", words.type))
            return pa.Array.from_buffers(type_, rows, [mask, pa.py_buffer(ends)], nulls, children=[words])
        is_api = kind == "api_name"
        width = pa.int16() if is_api else pa.int8()
        codes = pa.Array.from_buffers(width, rows, [mask, pa.py_buffer(buffers[0])], nulls)
        words = self._api_names if is_api else self._enums[kind.removeprefix("enum:")]
        return pa.DictionaryArray.from_arrays(codes, words, safe=False)

    def _without_values(self, messages: pa.DictionaryArray) -> pa.DictionaryArray:
        told = messages.dictionary.to_pylist()
        clean = [self._catalog.settings.without_values(text) for text in told]
        if clean == told:
            return messages
        distinct = texts(clean).dictionary_encode()
        codes = distinct.indices.take(messages.indices)
        return pa.DictionaryArray.from_arrays(codes, distinct.dictionary)

    def _derive(self, column: Column, numbers: pa.Array, apis: pa.Array | None) -> pa.Array:
        if column.type == "bool":
            return self._retriable.look_up(numbers)
        return self._errors.look_up(numbers, apis)


class PartBuilder(Builder):
    """Makes record batches of some columns, for code that looks at rows and keeps none."""

    def build_some(self, table: str, columns: Sequence[ColumnData], names: Container[str]) -> pa.RecordBatch:
        """The rows of one `take()`, with these columns and those they are derived from."""
        given = iter(columns)
        arrays: dict[str, pa.Array] = {}
        declared = TABLES[table].own
        sources = {each.derived_from for each in declared if each.name in names}
        if "error_code" in sources:
            sources.add("api_name")
        for column in declared:
            if column.derived_from:
                if column.name in names:
                    arrays[column.name] = self._derive(
                        column, arrays[column.derived_from], arrays.get("api_name")
                    )
                continue
            if not column.delivered:
                if column.name in names:
                    arrays[column.name] = make_nulls(column, len(next(iter(arrays.values()))))
                continue
            data = next(given)
            if column.name in names or column.name in sources:
                arrays[column.name] = self._array(data)
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _strings(rows: int, nulls: int, mask: pa.Buffer | None, buffers: Sequence[Any]) -> pa.DictionaryArray:
    indices, offsets, data, num_entries = buffers
    codes = pa.Array.from_buffers(pa.int32(), rows, [mask, pa.py_buffer(indices)], nulls)
    text = pa.py_buffer(data)
    entries = pa.Array.from_buffers(pa.string(), num_entries, [None, pa.py_buffer(offsets), text], 0)
    if num_entries > 1 and _REPLACEMENT.search(data):
        # Texts that differ on the wire can be equal once repaired; parquet needs unique entries.
        distinct = entries.dictionary_encode()
        codes = distinct.indices.take(codes)
        entries = distinct.dictionary
    return pa.DictionaryArray.from_arrays(codes, entries, safe=False)


def _binaries(rows: int, nulls: int, mask: pa.Buffer | None, buffers: Sequence[Any]) -> pa.DictionaryArray:
    indices, offsets, data, num_entries = buffers
    codes = pa.Array.from_buffers(pa.int32(), rows, [mask, pa.py_buffer(indices)], nulls)
    entries = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.DictionaryArray.from_arrays(
        codes, pa.Array.from_buffers(pa.binary(), num_entries, entries, 0), safe=False
    )


def make_nulls(column: Column, rows: int) -> pa.Array:
    """A number's or closed list's column without values, for rows of a run that has not ended."""
    if column.enum is None:
        return pa.nulls(rows, _FIXED[column.type])
    words = texts(DERIVED_ENUMS[column.enum])
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int8()), words, safe=False)


def _numbers(array: pa.Array) -> "np.ndarray[Any, np.dtype[np.uint16]]":
    """The int16 values of `array`, unsigned, to index a table of 65536; arbitrary in null slots."""
    return np.frombuffer(array.buffers()[1], np.uint16, len(array))


@cache
def _coded_schemas() -> Mapping[str, pa.Schema]:
    return {name: coded_schema(table) for name, table in (TABLES | INNER).items()}


class _Names:
    """int16 number -> text, as a dictionary array; null where the number is null or unknown."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._words = texts(list(names.values()))
        self._codes = np.full(1 << 16, -1, np.int16)
        for code, number in enumerate(names):
            self._codes[number & 0xFFFF] = code

    def look_up(self, numbers: pa.Array) -> pa.DictionaryArray:
        codes = self._codes[_numbers(numbers)]
        mask, nulls = _without_unknown(numbers, codes)
        indices = pa.Array.from_buffers(pa.int16(), len(codes), [mask, pa.py_buffer(codes)], nulls)
        return pa.DictionaryArray.from_arrays(indices, self._words, safe=False)


class _ErrorNames:
    """Error code -> name. Codes that only a product's servers have are named in responses of its own APIs."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._own = _names_of_errors(catalog)
        self._first = len(catalog.apis)
        """Slot of the first API of a product."""

    def look_up(self, numbers: pa.Array, apis: pa.Array | None) -> pa.DictionaryArray:
        ours = self._own.look_up(numbers)
        if apis is None:
            return ours
        slots = np.frombuffer(apis.indices.buffers()[1], np.int16, len(apis))
        if not len(slots) or slots.max() < self._first:
            return ours
        return self._of_products(numbers, slots, ours)

    def _of_products(
        self, numbers: pa.Array, slots: "np.ndarray[Any, Any]", ours: pa.DictionaryArray
    ) -> pa.DictionaryArray:
        import pyarrow.compute as pc

        named, start = ours.cast(pa.string()), self._first
        for each in self._catalog.by_product.values():
            end = start + len(each.added)
            theirs = pa.array((slots >= start) & (slots < end))
            names = _names_of_errors(each).look_up(numbers)
            named, start = pc.if_else(theirs, names.cast(pa.string()), named), end
        distinct = named.dictionary_encode()
        return pa.DictionaryArray.from_arrays(distinct.indices.cast(pa.int16()), distinct.dictionary)


@cache
def _names_of_errors(catalog: "Catalog") -> _Names:
    return _Names({code: error.name for code, error in catalog.errors.items()})


class _Flags:
    """int16 number -> bool; null where the number is null or unknown."""

    def __init__(self, flags: Mapping[int, bool]) -> None:
        self._codes = np.full(1 << 16, -1, np.int8)
        for number, flag in flags.items():
            self._codes[number & 0xFFFF] = flag

    def look_up(self, numbers: pa.Array) -> pa.BooleanArray:
        codes = self._codes[_numbers(numbers)]
        mask, nulls = _without_unknown(numbers, codes)
        return pa.Array.from_buffers(pa.bool_(), len(codes), [mask, bits(codes == 1)], nulls)


def _without_unknown(numbers: pa.Array, codes: "np.ndarray[Any, Any]") -> tuple[pa.Buffer | None, int]:
    """Validity and null count of `codes`, where -1 is unknown, given the nulls of `numbers`."""
    mask = numbers.buffers()[0]
    if not len(codes) or codes.min() >= 0:
        return mask, numbers.null_count
    valid = np.packbits(codes >= 0, bitorder="little")
    if mask is not None:
        valid &= np.frombuffer(mask, np.uint8, len(valid))
    return pa.py_buffer(valid), -1
