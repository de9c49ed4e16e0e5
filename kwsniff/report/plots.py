"""`found.plot`: the charts of the HTML report, for notebooks and pages of your own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwsniff.analysis.stored_tables import Tables
from kwsniff.errors import UsageError
from kwsniff.report.deliveries import make_deliveries
from kwsniff.report.errors import make_errors
from kwsniff.report.lag import make_lag
from kwsniff.report.latency import make_latency
from kwsniff.report.page import require_charts
from kwsniff.report.proof import find_commands
from kwsniff.report.rebalances import make_rebalances
from kwsniff.report.section import Section
from kwsniff.report.span import Span, find_span
from kwsniff.report.time_parts import make_time_parts
from kwsniff.report.topology import make_topology
from kwsniff.zones import UTC_ZONE

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM
    from duckdb import DuckDBPyConnection

    Make = Callable[[DuckDBPyConnection, Span | None], Section]


class Plots:
    """Charts of a run's tables, as Bokeh's models: `bokeh.io.show` shows them. Times are UTC.

    Every method raises UsageError where the tables have nothing to draw, and where Bokeh is not installed.
    """

    def __init__(self, found: Tables) -> None:
        self._found = found

    def latency(self) -> "LayoutDOM":
        """Number of calls by latency over time, a heat map per API."""
        return self._draw(lambda database, span: make_latency(database, span, (), UTC_ZONE))

    def time_parts(self) -> "LayoutDOM":
        """Where the time of calls went, by part, over time."""
        return self._draw(make_time_parts)

    def deliveries(self) -> "LayoutDOM":
        """How long record batches took to their readers, by part, over time."""
        return self._draw(make_deliveries)

    def errors(self) -> "LayoutDOM":
        """Error codes over time."""
        return self._draw(
            lambda database, span: make_errors(database, span, find_commands(database, None), UTC_ZONE)
        )

    def rebalances(self) -> "LayoutDOM":
        """Rebalances of groups over time."""
        return self._draw(make_rebalances)

    def lag(self) -> "LayoutDOM":
        """Lag of committed and of fetched offsets over time."""
        return self._draw(make_lag)

    def topology(self) -> "LayoutDOM":
        """Clients and brokers, with their connections."""
        return self._draw(lambda database, _: make_topology(database))

    def _draw(self, make: "Make") -> "LayoutDOM":
        require_charts()
        from bokeh.layouts import column

        with self._found.open_views() as database:
            section = make(database, find_span(database))
        plots = [chart.plot for chart in section.charts]
        if not plots:
            raise UsageError(f"nothing to draw: {' '.join(section.says)}")
        return plots[0] if len(plots) == 1 else column(plots, sizing_mode="stretch_width")
