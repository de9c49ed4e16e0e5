"""Which rows of api_calls fit filters, as far as rows tell, where no messages are at hand."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import RESPONSE, Field
from kwsniff.tables.arrays import Bits, Numbers, whole_numbers
from kwsniff.tables.compute import dictionary_encode
from kwsniff.view.filters import ANY_ERROR, Filters

_UNKNOWN: Final = -1

COLUMNS: Final = (
    "call_id", "connection_id", "client_address", "client_port", "broker_address", "broker_port", "api_key",
    "client_id", "status", "latency_ns", "error_code", "error_count", "topics", "group_id",
)  # fmt: skip
"""Of api_calls: what is looked at."""


class FittingRows:
    """Filters over rows. `generous`: the caller reads the messages afterwards, so that rows of calls that may
    hold what is looked for (an error inside a bytes field, a topic in records) fit as well."""

    def __init__(self, filters: Filters, catalog: Catalog, *, generous: bool = False) -> None:
        self._filters = filters
        self._generous = generous
        self._deep = _with_inner(catalog) if generous and filters.errors else frozenset()

    def fitting(self, calls: pa.RecordBatch, codes: pa.RecordBatch | None = None) -> Bits:
        """For each row whether it fits. `codes`: the rows of error_codes that belong to them."""
        filters = self._filters
        fits = np.ones(calls.num_rows, np.bool_)
        keys = whole_numbers(calls["api_key"], null=_UNKNOWN)
        if filters.calls is not None:
            fits &= np.isin(whole_numbers(calls["call_id"], null=_UNKNOWN), [*filters.calls])
        if filters.apis:
            fits &= np.isin(keys, [*filters.apis])
        if filters.min_latency_ns is not None:
            fits &= whole_numbers(calls["latency_ns"], null=_UNKNOWN) >= max(filters.min_latency_ns, 0)
        if filters.statuses:
            fits &= _words(calls["status"], filters.statuses.__contains__)
        if filters.connection is not None:
            ends = _at_end(calls, "client", filters.connection) | _at_end(calls, "broker", filters.connection)
            fits &= ends | _is_number(calls["connection_id"], filters.connection)
        if filters.client is not None:
            fits &= self._of_client(calls, filters.client)
        if filters.client_is is not None:
            wanted = {filters.client_is}.__contains__
            nameless = _words(calls["client_id"], lambda name: name is None)
            fits &= _words(calls["client_id"], wanted) | nameless & _words(calls["client_address"], wanted)
        if filters.errors:
            fits &= self._match_failed(calls, codes, keys)
        if filters.group is not None and not self._generous:
            fits &= _words(calls["group_id"], {filters.group}.__contains__)
        if filters.topic is not None and not self._generous:
            fits &= _any_word(calls["topics"], {filters.topic})
        return fits

    @staticmethod
    def _of_client(calls: pa.RecordBatch, wanted: str) -> Bits:
        part = wanted.lower()
        named = _words(calls["client_id"], lambda name: name is not None and part in name.lower())
        alone = _words(calls["client_address"], {wanted}.__contains__)
        return named | alone | _at_end(calls, "client", wanted)

    def _match_failed(self, calls: pa.RecordBatch, codes: pa.RecordBatch | None, keys: Numbers) -> Bits:
        wanted = self._filters.errors
        count = whole_numbers(calls["error_count"], null=_UNKNOWN)
        if self._generous:
            return (count != 0) | np.isin(keys, [*self._deep]) if 0 not in wanted else count >= _UNKNOWN
        fits = count > 0 if ANY_ERROR in wanted else np.zeros(calls.num_rows, np.bool_)
        if 0 in wanted:
            fits |= count == 0
        if codes is not None and codes.num_rows:
            numbers = [code for code in wanted if code is not None]
            told = np.isin(whole_numbers(codes["error_code"], null=0), numbers)
            ids = whole_numbers(codes["call_id"], null=_UNKNOWN)[told]
            fits |= np.isin(whole_numbers(calls["call_id"], null=_UNKNOWN), ids)
        return fits


def _words(column: pa.Array, test: Callable[[str | None], bool]) -> Bits:
    """For each row what the test says of its text; every text is asked about once."""
    coded = column if pa.types.is_dictionary(column.type) else dictionary_encode(column)
    told: Bits = np.array([*map(test, coded.dictionary.to_pylist()), test(None)], np.bool_)
    fits: Bits = told[whole_numbers(coded.indices, null=_UNKNOWN)]
    return fits


def _any_word(lists: pa.Array, wanted: set[str]) -> Bits:
    """For each row whether one of its texts is wanted."""
    fits = np.zeros(len(lists), np.bool_)
    if not len(lists) or not len(lists.values):
        return fits
    ends = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset : lists.offset + len(lists) + 1]
    rows = np.repeat(np.arange(len(lists)), np.diff(ends))
    fits[rows[_words(lists.values, wanted.__contains__)[ends[0] : ends[-1]]]] = True
    return fits


def _at_end(calls: pa.RecordBatch, side: str, wanted: str) -> Bits:
    """`wanted` as address:port, IPv6 with brackets or without."""
    address, _, port = wanted.rpartition(":")
    if not port.isdecimal() or len(port) > len("65535"):
        return np.zeros(calls.num_rows, np.bool_)
    there = _words(calls[f"{side}_address"], {address.removeprefix("[").removesuffix("]")}.__contains__)
    fits: Bits = there & (whole_numbers(calls[f"{side}_port"], null=_UNKNOWN) == int(port))
    return fits


def _is_number(column: pa.Array, wanted: str) -> Bits:
    numbers = whole_numbers(column, null=_UNKNOWN)
    if not (wanted.isascii() and wanted.isdecimal()) or len(wanted) >= len(str(1 << 63)):
        return np.zeros(len(numbers), np.bool_)
    fits: Bits = numbers == int(wanted)
    return fits


def _with_inner(catalog: Catalog) -> frozenset[int]:
    """APIs whose responses hold bytes that have fields of their own."""
    messages = ((key, catalog.message(key, RESPONSE)) for key in catalog.apis)
    return frozenset(
        key for key, message in messages if message and _has(tuple(message.fields), {Meaning.SCHEMA})
    )


def _has(fields: tuple[Field, ...], meanings: set[Meaning]) -> bool:
    return any(field.meaning in meanings or _has(tuple(field.children), meanings) for field in fields)
