"""`found.plot`: the charts of the report, in memory and of a folder, with the figures of the tables."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import kwsniff
from kwsniff.analysis.stored_tables import Tables
from kwsniff.report.deliveries import PARTS

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


def _tooltips(drawings: Any) -> list[str]:
    """Those of all regions."""
    return [words for drawing in drawings for _, words in drawing.regions]


@pytest.mark.sample(1)
def test_the_heat_maps_have_every_complete_call(found: Tables) -> None:
    calls = found.latencies.to_pandas()
    busiest = (
        calls.assign(own=calls["total_ns"] - calls["deliberate_wait_ns"]).groupby("api_name")["own"].sum()
    )
    chosen = busiest.nlargest(6).index
    texts = "\n".join(_tooltips(found.plot.latency()))
    shown = [int(each.replace(",", "")) for each in re.findall(r": ([0-9,]+) calls?$", texts, re.MULTILINE)]
    assert sum(shown) == int(calls["api_name"].isin(chosen).sum())


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_is_markup_or_says_what_is_missing(kind: str, found: Tables) -> None:
    if kind == "errors" and not found.error_codes.num_rows:
        with pytest.raises(kwsniff.UsageError, match="nothing to draw"):
            found.plot.errors()
        return
    plot = getattr(found.plot, kind)()
    shown = ElementTree.fromstring(f"<div>{plot.html}</div>")  # noqa: S314 - our own
    assert plot._repr_html_() == plot.html
    assert len(shown.findall("div")) == len(plot)
    paths = shown.findall(".//path")
    assert len(paths) >= len(plot)
    assert all(re.fullmatch(r"[MLhvz0-9e. +-]+", each.attrib["d"]) for each in paths)


def test_every_method_is_tried() -> None:
    from kwsniff.report.plots import Plots

    assert {name for name in vars(Plots) if not name.startswith("_")} == {*KINDS}


def test_parts_of_deliveries_add_up_to_the_times_of_the_table() -> None:
    """Means of batches by slot, weighted with their number: each part of the table, in milliseconds."""
    found = kwsniff.analyze(CAPTURES / "deliveries" / "capture.pcap.gz")
    rows = [row for row in found.deliveries.to_pylist() if row["produced_time"] and row["fetched_time"]]
    (drawing,) = found.plot.deliveries()
    counts = [int(each[1]) for each in re.finditer(r"batches: ([0-9]+)", "\n".join(_tooltips([drawing])))]
    assert sum(counts) == len(rows)
    middles = [(region.left + region.right) / 2 for region, _ in drawing.regions]
    for name, words in PARTS.items():
        (boxes,) = [mark.boxes for mark in drawing.marks if mark.name == words] or [[]]
        means = {round((box.left + box.right) / 2, 3): box.top - box.bottom for box in boxes}
        each = zip(middles, counts, strict=True)
        whole = sum(means.get(round(middle, 3), 0) * count for middle, count in each)
        assert whole == pytest.approx(sum(row[name] or 0 for row in rows) / 1e6)
