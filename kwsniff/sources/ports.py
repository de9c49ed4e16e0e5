"""Ports that callers name as brokers'."""

from collections.abc import Iterable
from operator import index

from kwsniff.errors import UsageError


def check_ports(ports: int | Iterable[int]) -> tuple[int, ...]:
    """Several ports, or one; numpy's numbers, too. Raises UsageError for what is no port."""
    several = isinstance(ports, Iterable) and not isinstance(ports, str)
    return tuple(map(_checked, ports if several else (ports,)))  # type: ignore[arg-type]


class AskedPorts:
    """Ports that a caller named, and which of them no connection has had so far."""

    def __init__(self, ports: Iterable[int] = ()) -> None:
        self.asked = tuple(ports)
        self.absent = set(self.asked)

    def note(self, ports: Iterable[int]) -> None:
        """Ports that connections have, of either side."""
        self.absent.difference_update(ports)


def _checked(port: object) -> int:
    try:
        number = index(port)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{port!r} is no port: ports are whole numbers, 1 to 65535") from None
    if not 0 < number < 65536:
        raise UsageError(f"port {number} is outside 1 to 65535")
    return number
