"""Broker ports given by the caller."""

from collections.abc import Iterable
from operator import index

from kwsniff.errors import UsageError


def check_ports(ports: int | Iterable[int]) -> tuple[int, ...]:
    """Several ports, or one; also numpy integers. Raises UsageError for an invalid port."""
    several = isinstance(ports, Iterable) and not isinstance(ports, str)
    return tuple(map(_check, ports if several else (ports,)))  # type: ignore[arg-type]


class AskedPorts:
    """Ports given by the caller, and those without a connection so far."""

    def __init__(self, ports: Iterable[int] = ()) -> None:
        self.asked = tuple(ports)
        self.absent = set(self.asked)

    def add(self, ports: Iterable[int]) -> None:
        """Takes the ports of both sides of connections."""
        self.absent.difference_update(ports)


def _check(port: object) -> int:
    try:
        number = index(port)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{port!r} is not a port: ports are whole numbers from 1 to 65535") from None
    if not 0 < number < 65536:
        raise UsageError(f"port {number} is outside 1 to 65535")
    return number
