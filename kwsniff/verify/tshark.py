"""tshark, through pyshark, as a second decoder of Kafka captures, message by message."""

import asyncio
import gc
import logging
import re
import shutil
import subprocess
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from kwsniff.errors import CaptureError, UsageError

_UNSUPPORTED: Final = re.compile(r"Unsupported (\w+) version\. Supports v(\d+)(?:-(\d+))?")
_NAME: Final = re.compile(r"API Key: (\w+)")
_SETTINGS: Final = {"tcp.reassemble_out_of_order": "TRUE", "tcp.desegment_tcp_streams": "TRUE"}


@dataclass(frozen=True, slots=True)
class TsharkMessage:
    """A message as decoded by tshark. ``frame``: its last frame; ``errors``: nonzero codes,
    None if it shows no code. ``undecoded``: why it decoded only the header."""

    frame: int
    sender: tuple[str, int]
    receiver: tuple[str, int]
    to_broker: bool
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    size: int | None
    request_frame: int | None
    errors: tuple[int, ...] | None
    undecoded: str | None
    retransmitted: bool


def witness_version() -> str:
    """The version, such as TShark 4.0.17. Raises UsageError if tshark or pyshark is missing."""
    program = shutil.which("tshark")
    if program is None:
        raise UsageError("verify needs tshark: apt-get install tshark")
    try:
        import pyshark  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "verify needs pyshark: pip install '.[capture]' in a clone of kwsniff's repository"
        ) from error
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    found = re.search(r"TShark \D*(\d+[\d.]*\d)", told)
    return f"tshark {found[1]}" if found else "tshark"


def messages(path: str, ports: Sequence[int]) -> Generator[list[TsharkMessage], None, None]:
    """The Kafka messages that end in a packet, packet by packet. `ports`: those of brokers.

    Raises CaptureError if tshark ends before the capture does.
    """
    import pyshark

    with _quiet_loop() as loop:
        capture = pyshark.FileCapture(
            path,
            display_filter="kafka",
            decode_as={f"tcp.port=={port}": "kafka" for port in ports},
            override_prefs=_SETTINGS,
            keep_packets=False,
            eventloop=loop,
        )
        try:
            yield from _read(capture, path, frozenset(ports))
        finally:
            # pyshark reports a tshark that has just ended as crashed when it is closed, because its exit
            # status
            # was already collected.
            with suppress(pyshark.capture.capture.TSharkCrashException):
                capture.close()
            capture._running_processes.clear()  # its finaliser would close again, on a closed event loop


_CUT_SHORT: Final = "cut short in the middle of a packet"


def _read(capture: Any, path: str, ports: frozenset[int]) -> Iterator[list[TsharkMessage]]:
    from pyshark.capture.capture import TSharkCrashException

    last = 0
    try:
        for packet in capture:
            last = int(packet.number)
            yield [_read_packet(packet, each, ports) for each in packet.layers if each.layer_name == "kafka"]
    except TSharkCrashException as error:
        # The exception is the same for a normal end, so tshark's last message decides. A file that ends in
        # the middle of a packet was read up to there, as in kwsniff.
        if not any(each in str(error) for each in ("retcode: 0", "retcode: 255", _CUT_SHORT)):
            raise CaptureError(f"{path}: tshark stopped after packet {last}: {error}") from error


def _read_packet(packet: Any, layer: Any, ports: frozenset[int]) -> TsharkMessage:
    def numbers(name: str) -> list[int]:
        return [int(text, 0) for text in _values(layer, name)]

    address = packet.ipv6 if "IPV6" in packet and "IP" not in packet else packet.ip
    key, version = (next(iter(numbers(name)), None) for name in ("api_key", "api_version"))
    to_broker = bool(_values(layer, "request_key")) or (
        not _values(layer, "request_frame") and int(packet.tcp.dstport) in ports
    )
    if not to_broker:
        version = next(iter(numbers("response_version")), None)
    return TsharkMessage(
        frame=int(packet.number),
        sender=(address.src, int(packet.tcp.srcport)),
        receiver=(address.dst, int(packet.tcp.dstport)),
        to_broker=to_broker,
        api_key=key,
        api_version=version,
        correlation_id=next(iter(numbers("correlation_id")), None),
        client_id=next(iter(_values(layer, "client_id")), None),
        size=next(iter(numbers("len")), None),
        request_frame=next(iter(numbers("request_frame")), None),
        errors=tuple(code for code in codes if code) if (codes := numbers("error")) else None,
        undecoded=_explain_undecoded(layer),
        retransmitted=packet.tcp.get_field("analysis_retransmission") is not None,
    )


def _explain_undecoded(layer: Any) -> str | None:
    """Why tshark did not read the body."""
    field = layer.get_field("api_key")
    version = next(iter(_values(layer, "api_version") or _values(layer, "response_version")), None)
    named = _NAME.search(field.showname or "") if field is not None else None
    if named is None or version is None:
        return None
    if named[1] == "Unknown":
        return "unknown API"
    for text in _values(layer, "_ws_expert_message"):
        found = _UNSUPPORTED.search(text)
        if not found or found[1] != named[1]:
            continue  # about API ranges in an ApiVersions response
        least, most = int(found[2]), int(found[3] or found[2])
        if not least <= int(version, 0) <= most:
            return f"it supports {found[1]} {least}" + (f" to {most}" if most > least else "")
    return None


def _values(layer: Any, name: str) -> list[str]:
    field = layer.get_field(name)
    return [] if field is None else [part.get_default_value() for part in field.all_fields]


@contextmanager
def _quiet_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """pyshark needs its own event loop, and its use of child watchers is deprecated."""
    logger = logging.getLogger("asyncio")
    before = logger.level
    logger.setLevel(logging.ERROR)
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
            gc.collect()  # its unfinished transports print warnings
            logger.setLevel(before)
