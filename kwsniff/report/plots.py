"""`found.plot`: the charts of the HTML report, for notebooks and pages of your own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwsniff.analysis.stored_tables import Tables
from kwsniff.errors import UsageError
from kwsniff.report.deliveries import make_deliveries
from kwsniff.report.drawing import Drawings
from kwsniff.report.errors import make_errors
from kwsniff.report.lag import make_lag
from kwsniff.report.latency import make_latency
from kwsniff.report.proof import find_commands
from kwsniff.report.rebalances import make_rebalances
from kwsniff.report.section import Section
from kwsniff.report.span import Span, find_span
from kwsniff.report.time_parts import make_time_parts
from kwsniff.report.topology import make_topology
from kwsniff.zones import UTC_ZONE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    Make = Callable[[DuckDBPyConnection, Span | None], Section]


class Plots:
    """Charts of a run's tables, which notebooks show; `.html` is for a page of your own. Times are UTC.

    Every method raises UsageError where the tables have nothing to draw.
    """

    def __init__(self, found: Tables) -> None:
        self._found = found

    def latency(self) -> Drawings:
        """Number of calls by latency over time, a heat map per API."""
        return self._draw(lambda database, span: make_latency(database, span, (), UTC_ZONE))

    def time_parts(self) -> Drawings:
        """Where the time of calls went, by part, over time."""
        return self._draw(make_time_parts)

    def deliveries(self) -> Drawings:
        """How long record batches took to their readers, by part, over time."""
        return self._draw(make_deliveries)

    def errors(self) -> Drawings:
        """Error codes over time."""
        return self._draw(
            lambda database, span: make_errors(database, span, find_commands(database, None), UTC_ZONE)
        )

    def rebalances(self) -> Drawings:
        """Rebalances of groups over time."""
        return self._draw(make_rebalances)

    def lag(self) -> Drawings:
        """Lag of committed and of fetched offsets over time."""
        return self._draw(make_lag)

    def topology(self) -> Drawings:
        """Clients and brokers, with their connections."""
        return self._draw(lambda database, _: make_topology(database))

    def _draw(self, make: "Make") -> Drawings:
        with self._found.open_views() as database:
            section = make(database, find_span(database))
        drawings = Drawings(each for chart in section.charts for each in chart.drawings)
        if not drawings:
            raise UsageError(f"nothing to draw: {' '.join(section.says)}")
        return drawings
