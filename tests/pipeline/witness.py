"""tshark, asked through pyshark, as a second reader of Kafka captures."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

# Newest version tshark 4.0 dissects, per API key (its table is that of Kafka 2.5).
NEWEST = {
    0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 15: 5, 16: 3, 17: 1, 18: 3, 19: 5,
    20: 4, 22: 3, 23: 3, 24: 1, 25: 1, 26: 1, 28: 3, 36: 2,
}  # fmt: skip
# Its error code field is not told from others, or the layout is misread: only header facts are compared.
NO_ERRORS = {11, 14}


@contextmanager
def _quiet_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """pyshark needs a loop of its own, and what it does with child watchers is deprecated."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # "unknown child process": see below
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            yield loop
        finally:
            loop.close()
            asyncio.set_event_loop(None)
            gc.collect()  # its unfinished transports complain while nobody listens


def _values(layer: Any, name: str) -> list[str]:
    field = layer.get_field(name)
    return [] if field is None else [part.get_default_value() for part in field.all_fields]


def pdus(path: Path, ports: Sequence[int]) -> list[dict[str, Any]]:
    """One entry per Kafka message that tshark sees, in the order of their frames."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    pyshark = pytest.importorskip("pyshark")
    decode_as: Mapping[str, str] = {f"tcp.port=={port}": "kafka" for port in ports}
    found: list[dict[str, Any]] = []
    with _quiet_loop() as loop:
        capture = pyshark.FileCapture(
            str(path), display_filter="kafka", decode_as=decode_as, keep_packets=False, eventloop=loop
        )
        # A tshark that has just ended is taken for a crashed one when pyshark kills it (its exit status is
        # then collected already). Should it really crash, packets are missing and the comparison fails.
        with suppress(pyshark.capture.capture.TSharkCrashException):
            for packet in capture:
                layers = [layer for layer in packet.layers if layer.layer_name == "kafka"]
                found += [_pdu(packet, layer, ports) for layer in layers]
        with suppress(pyshark.capture.capture.TSharkCrashException):
            capture.close()
        capture._running_processes.clear()  # or its finaliser would close again, on a loop long gone
    return found


def _pdu(packet: Any, layer: Any, ports: Sequence[int]) -> dict[str, Any]:
    def number(name: str) -> int | None:
        values = _values(layer, name)
        return int(values[0], 0) if values else None

    return {
        "frame": int(packet.number),
        "stream": int(packet.tcp.stream),
        "to_broker": int(packet.tcp.dstport) in ports,
        "api_key": number("api_key"),
        "api_version": number("api_version"),
        "correlation_id": number("correlation_id"),
        "client_id": next(iter(_values(layer, "client_id")), None),
        "request_frame": number("request_frame"),
        "errors": [int(code, 0) for code in _values(layer, "error") if int(code, 0)],
    }
