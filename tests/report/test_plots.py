"""`found.plot`: the charts of the report, in memory and of a folder, with the figures of the tables."""

from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.analysis.stored_tables import Tables

pytest.importorskip("bokeh")
CAPTURES = Path(__file__).resolve().parents[2] / "captures"
BUSY = CAPTURES / "incidents" / "broker_stalled" / "broker.pcap"
KINDS = ("latency", "time_parts", "deliveries", "errors", "rebalances", "lag", "topology")


@pytest.fixture(scope="module", params=["in memory", "in a folder", "chosen rows of a folder"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    if request.param == "in memory":
        return kwsniff.analyze(BUSY)
    folder = tmp_path_factory.mktemp("plots")
    kwsniff.analyze(BUSY, output=folder)
    return kwsniff.open(folder, where="latency >= 0s" if "chosen" in request.param else None)


def _columns(plot: Any, name: str) -> list[Any]:
    """A column of every source of data in a chart."""
    from bokeh.models import ColumnDataSource

    sources = plot.select({"type": ColumnDataSource})
    return [value for source in sources if name in source.data for value in source.data[name]]


@pytest.mark.sample(1)
def test_the_heat_maps_have_every_complete_call(found: Tables) -> None:
    calls = found.latencies.to_pandas()
    busiest = (
        calls.assign(own=calls["total_ns"] - calls["deliberate_wait_ns"]).groupby("api_name")["own"].sum()
    )
    chosen = busiest.nlargest(6).index
    shown = [int(text.replace(",", "")) for text in _columns(found.plot.latency(), "calls")]
    assert sum(shown) == int(calls["api_name"].isin(chosen).sum())


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_is_a_model_of_bokeh_or_says_what_is_missing(kind: str, found: Tables) -> None:
    from bokeh.embed import json_item
    from bokeh.models import LayoutDOM

    if kind == "errors" and not found.error_codes.num_rows:
        with pytest.raises(kwsniff.UsageError, match="nothing to draw"):
            found.plot.errors()
        return
    plot = getattr(found.plot, kind)()
    assert isinstance(plot, LayoutDOM)
    assert json_item(plot)["doc"]["roots"]


def test_every_method_is_tried() -> None:
    from kwsniff.report.plots import Plots

    assert {name for name in vars(Plots) if not name.startswith("_")} == {*KINDS}


def test_parts_of_deliveries_add_up_to_the_times_of_the_table() -> None:
    """Means of batches by slot, weighted with their number: each part of the table, in milliseconds."""
    found = kwsniff.analyze(CAPTURES / "deliveries" / "capture.pcap.gz")
    rows = [row for row in found.deliveries.to_pylist() if row["produced_time"] and row["fetched_time"]]
    drawn = found.plot.deliveries().renderers[0].data_source.data
    counts = drawn["batches"]
    assert sum(counts) == len(rows)
    for name in ("before_wire_ns", "produce_ns", "fetch_wait_ns", "fetch_ns", "processing_ns"):
        whole = sum(mean * count for mean, count in zip(drawn[name], counts, strict=True))
        assert whole == pytest.approx(sum(row[name] or 0 for row in rows) / 1e6)
