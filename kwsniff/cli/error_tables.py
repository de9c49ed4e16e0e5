"""Errors by client and by broker, as tables on the screen: names first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kwsniff.cli.text_tables import Grid
from kwsniff.texts import clean, in_percent

Rows = Sequence[Mapping[str, Any]]
ROUTINE: Final = frozenset({27, 51, 79})
"""REBALANCE_IN_PROGRESS, CONCURRENT_TRANSACTIONS, MEMBER_ID_REQUIRED: harmless, clients retry."""


def without_routine(errors: Mapping[str, Rows]) -> dict[str, Rows]:
    """Errors that may need action."""
    return {
        name: [each for each in rows if each["error_code"] not in ROUTINE] for name, rows in errors.items()
    }


def failure_grids(errors: Mapping[str, Rows], title: str = "Errors") -> Iterator[Grid]:
    """A grid by client and one by broker. `errors`: errors_by_client and errors_by_broker."""
    yield clients_grid(errors["errors_by_client"], title)
    yield brokers_grid(errors["errors_by_broker"], title)


def clients_grid(rows: Rows, title: str = "Errors") -> Grid:
    """Errors by the client that received them; a client without an id is named by its address."""
    about = any(each.get("about") for each in rows)
    cells: list[tuple[str, ...]] = [
        (
            clean(each["client_id"] or each["client_address"]),
            clean(each["client_address"]),
            *_figures(each),
            *([clean(each["about"])] if about else []),
        )
        for each in rows
    ]
    more = ("about",) if about else ()
    names = ("client", "address", "error", "count", "share", *more)
    order = ("client", "error", "count", "share", *more)
    return Grid(f"{title} by client, and the share of its calls", names, cells, order)


def brokers_grid(rows: Rows, title: str = "Errors") -> Grid:
    """Errors by the broker that sent them."""
    cells = [(_broker(each), *_figures(each)) for each in rows]
    names = ("broker", "error", "count", "share")
    return Grid(f"{title} by broker, and the share of calls to it", names, cells, names)


def _broker(each: Mapping[str, Any]) -> str:
    address, port = clean(each["broker_address"]), each["broker_port"]
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _figures(each: Mapping[str, Any]) -> tuple[str, str, str]:
    name = clean(each["error_name"]) or f"error {each['error_code']}"
    share = in_percent(each["share"])
    return name, f"{each['count']:,}", share
