"""Client metrics of PushTelemetry (KIP-714): compressed OTLP MetricsData; only names and sizes are read.

    MetricsData > resource_metrics 1 > scope_metrics 2 > metrics 2 > name 1, unit 3,
                                                                     gauge 5, sum 7, histogram 9,
                                                                     exponential_histogram 10, summary 11
                                                                     > data_points 1

Field numbers from opentelemetry/proto/metrics/v1/metrics.proto. Every length is checked against
the bytes left.
"""

from collections.abc import Iterator
from typing import Any, Final

from kwsniff.codecs.compressed_batch import CODECS, CodecError, decompress
from kwsniff.view.model import Inner

_MOST_METRICS: Final = 10_000
_KINDS: Final = {5: "gauge", 7: "sum", 9: "histogram", 10: "exponential_histogram", 11: "summary"}
_FIXED: Final = {1: 8, 5: 4}
_VARINT, _DELIMITED = 0, 2


class _Broken(Exception):
    """Not protobuf, caught in this module."""


def read_metrics(data: bytes, codec: int, most_bytes: int) -> Inner:
    """Names, units, kinds and numbers of points of the metrics; a note if the bytes are something else, or
    decompress to more than ``most_bytes``."""
    try:
        plain = decompress(codec, data, limit=most_bytes)
    except CodecError as error:
        name = CODECS[codec] if 0 <= codec < len(CODECS) else f"codec {codec}"
        return Inner("metrics", note=f"{name}: {str(error).replace('_', ' ')}")
    metrics: list[dict[str, Any]] = []
    inner = Inner("metrics", facts={"bytes": len(plain), "metrics": metrics})
    try:
        for resource in _inside(plain, 1):
            for scope in _inside(resource, 2):
                for metric in _inside(scope, 2):
                    if len(metrics) == _MOST_METRICS:
                        inner.note = f"only the first {_MOST_METRICS} metrics"
                        return inner
                    metrics.append(_metric(metric))
    except _Broken:
        inner.note = "not OTLP from some byte on"
    return inner


def _metric(data: memoryview | bytes) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": "", "unit": "", "kind": None, "points": 0, "bytes": len(data)}
    for number, piece in _fields(data):
        if number in (1, 3):
            facts["name" if number == 1 else "unit"] = bytes(piece).decode("utf-8", "replace")
        elif number in _KINDS:
            facts["kind"] = _KINDS[number]
            facts["points"] += sum(1 for _ in _inside(piece, 1))
    return facts


def _inside(data: memoryview | bytes, wanted: int) -> Iterator[memoryview]:
    return (piece for number, piece in _fields(data) if number == wanted)


def _fields(data: memoryview | bytes) -> Iterator[tuple[int, memoryview]]:
    """Number and bytes of every length-delimited field; other fields are skipped."""
    data = memoryview(data)
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            _, at = _varint(data, at)
            continue
        size, at = (_FIXED[wire], at) if wire in _FIXED else _varint(data, at)
        if wire not in (*_FIXED, _DELIMITED) or size > len(data) - at:
            raise _Broken
        if wire == _DELIMITED:
            yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    raw = 0
    for count in range(10):
        if at + count >= len(data):
            break
        byte = data[at + count]
        raw |= (byte & 127) << 7 * count
        if byte < 128:
            return raw, at + count + 1
    raise _Broken
