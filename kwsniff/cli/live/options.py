"""The options of ``kwsniff live``, checked."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwsniff.cli.options.filters import chosen_filter
from kwsniff.cli.options.limits import parse_limits
from kwsniff.cli.options.ports import parse_ports
from kwsniff.cli.options.times import refuse_times
from kwsniff.errors import UsageError
from kwsniff.live.retention import Retention

if TYPE_CHECKING:
    from kwsniff.filter.expression import Filter

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options, checked."""

    ports: list[int]
    limits: dict[str, int]
    interval: float
    duration: float | None
    rotate_seconds: float
    rotate_bytes: int
    ring_files: int
    ring_bytes: int
    metrics: tuple[str, int] | None
    keep: Retention
    speed: float
    """Replay speed of a file; 0 is as fast as possible."""
    filter: "Filter | None"
    """Which calls are shown, written and counted; None: all."""
    capture: str | None
    """The file, or -, if the source is not an interface."""


def check(args: argparse.Namespace) -> LiveOptions:
    """Raises UsageError for invalid values or combinations."""
    from kwsniff.sources.paths import local_path

    if args.stop_after is not None and args.stop_after < 1:
        raise UsageError(f"--stop-after must be at least 1, not {args.stop_after}")
    if not 1 <= args.buffer <= 2000:
        raise UsageError(f"--buffer must be from 1 to 2000 (MB), not {args.buffer}")
    if not 64 <= args.snaplen <= 262_144:
        raise UsageError(f"--snaplen must be from 64 to 262144 (bytes), not {args.snaplen}")
    if args.output is not None:
        args.output = local_path(args.output)
    unwritten = [name for name in ("ring", "rotate", "table", "keep") if getattr(args, name)]
    if args.output is None and unwritten:
        option = f"--{unwritten[0]}"
        raise UsageError(f"{option} needs a directory to write to: add -o DIR")
    capture = _capture(args)
    ring_files, ring_bytes = _parse_ring(args.ring)
    seconds, size = _parse_rotate(args.rotate)
    return LiveOptions(
        ports=parse_ports(args.port),
        limits=parse_limits(args.limit),
        interval=_parse_time("--interval", args.interval),
        duration=None if args.duration is None else _parse_time("--duration", args.duration),
        rotate_seconds=seconds,
        rotate_bytes=size,
        ring_files=ring_files,
        ring_bytes=ring_bytes,
        metrics=_parse_address(args.metrics),
        keep=_parse_keep(args.keep),
        speed=_parse_speed(args.speed),
        filter=chosen_filter(args),
        capture=capture,
    )


_OF_INTERFACES = ("filter", "tunnels", "tool")


def _capture(args: argparse.Namespace) -> str | None:
    """The capture that is read instead of an interface, if any."""
    from kwsniff.sources.live import interfaces
    from kwsniff.sources.paths import local_path
    from kwsniff.sources.replay import is_capture

    there = interfaces()
    names = [name if name in there else local_path(name) for name in args.interface]
    captures = [name for name in names if name not in there and is_capture(name)]
    if not captures:
        refuse_times(args, "an interface, which has no past")
        if args.speed is not None:
            raise UsageError("--speed applies only to replayed files")
        return None
    if len(names) > 1:
        raise UsageError(f"{captures[0]}: live replays one capture; `kwsniff analyze` reads several")
    if unfit := next((name for name in _OF_INTERFACES if getattr(args, name)), None):
        raise UsageError(f"--{unfit} applies only to interfaces, and {captures[0]} is a capture; use --port")
    return captures[0]


def _parse_keep(texts: list[str]) -> Retention:
    seconds, size = None, None
    for text in (part for given in texts for part in given.split(",")):
        found = _split_unit(text)
        if found and found[1] in _BYTES:
            size = _parse_size("--keep", text)
        else:
            seconds = _parse_time("--keep", text)
    return Retention(seconds, size)


def _parse_speed(text: str | None) -> float:
    if text is None:
        return 1.0
    if text == "max":
        return 0.0
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1e6:
        raise UsageError(f"--speed {text}: give a factor, for example 10, or max")
    return speed


_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"kb": 1_000, "mb": _MB, "gb": 1000 * _MB}


def _split_unit(text: str) -> tuple[float, str] | None:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    try:
        return float(number), text.strip()[len(number) :].strip().lower()
    except ValueError:
        return None


def _parse_time(option: str, text: str) -> float:
    found = _split_unit(text)
    if not found or found[1] not in _SECONDS or not 0 < found[0] * _SECONDS[found[1]] < 1e9:
        raise UsageError(f"{option} {text}: give a time, for example 30s, 5m or 2h")
    return found[0] * _SECONDS[found[1]]


def _parse_size(option: str, text: str) -> int:
    found = _split_unit(text)
    if not found or found[1] not in _BYTES or not 1 <= found[0] * _BYTES[found[1]] < 1e15:
        raise UsageError(f"{option} {text}: give a size, for example 500kB, 64MB or 1GB")
    return round(found[0] * _BYTES[found[1]])


def _parse_rotate(texts: list[str]) -> tuple[float, int]:
    seconds, size = 60.0, 128 * _MB
    for text in (part for given in texts for part in given.split(",")):
        found = _split_unit(text)
        if found and found[1] in _BYTES:
            size = _parse_size("--rotate", text)
        elif found and found[1] in _SECONDS:
            seconds = _parse_time("--rotate", text)
        else:
            raise UsageError(f"--rotate {text}: give a time or a size, for example --rotate 5m --rotate 64MB")
    return seconds, size


def _parse_ring(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    files, slash, size = text.partition("/")
    if not files.strip().isdecimal() or int(files) < 1:
        raise UsageError(f"--ring {text}: give the number of files to keep, and their size: --ring 10/64MB")
    return int(files), _parse_size("--ring", size) if slash else 64 * _MB


def _parse_address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--metrics {text}: give a port, or host:port, for example --metrics 9464")
    return host.strip("[]") or "127.0.0.1", int(port)
