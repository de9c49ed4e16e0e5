"""Ports that callers name as brokers'."""

from collections.abc import Iterable
from operator import index

from kwsniff.errors import UsageError


def check_ports(ports: int | Iterable[int]) -> tuple[int, ...]:
    """Several ports, or one; numpy's numbers, too. Raises UsageError for what is no port."""
    several = isinstance(ports, Iterable) and not isinstance(ports, str)
    return tuple(map(_checked, ports if several else (ports,)))  # type: ignore[arg-type]


def _checked(port: object) -> int:
    try:
        number = index(port)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{port!r} is no port: ports are whole numbers, 1 to 65535") from None
    if not 0 < number < 65536:
        raise UsageError(f"port {number} is outside 1 to 65535")
    return number
