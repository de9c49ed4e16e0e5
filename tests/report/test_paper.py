"""The HTML report on paper: all of it, and no chart cut off."""

from __future__ import annotations

import re
from contextlib import chdir
from pathlib import Path

import pytest

from kwsniff.cli import main
from tests.house.tree import ROOT

from .browser import ask, needs_chromium, run_chromium

MOST_PAGES = 4


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a broker that stood still."""
    made = tmp_path_factory.mktemp("page") / "why.html"
    with chdir(ROOT):  # a longer path would take more lines
        assert main.run(["why", "captures/incidents/broker_stalled/broker.pcap", "--html", str(made)]) == 1
    return made


@pytest.mark.slow
@needs_chromium
def test_a_page_prints_with_its_proofs_on_four_sheets(page: Path, tmp_path: Path) -> None:
    script = """async () => {
      const folded = () => document.querySelectorAll("details:not([open])").length;
      const before = folded();
      dispatchEvent(new Event("beforeprint"));
      const printing = folded();
      dispatchEvent(new Event("afterprint"));
      return {before, printing, after: folded()};
    }"""
    found = ask(page, tmp_path, script)["found"]
    assert found["printing"] == 0 < found["before"] == found["after"]
    printed = tmp_path / "page.pdf"
    run_chromium(page, tmp_path, f"--print-to-pdf={printed}")
    assert 0 < len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= MOST_PAGES


@pytest.mark.slow
@needs_chromium
def test_a_chart_and_its_heading_fit_on_one_page_of_paper(page: Path, tmp_path: Path) -> None:
    """What is drawn over the edge of a page is cut off; landscape A4 has 194 mm between margins of 8 mm."""
    script = """async () => {
      dispatchEvent(new Event("beforeprint"));
      const first = [...document.querySelectorAll("section")].map((each) => each.querySelector("figure"));
      const charts = first.filter(Boolean).map((each) => {
        const heading = each.closest("section").querySelector("h2").getBoundingClientRect();
        return [each.querySelector(".chart").id, each.getBoundingClientRect().bottom - heading.top];
      });
      dispatchEvent(new Event("afterprint"));
      return charts;
    }"""
    heights = dict(ask(page, tmp_path, script)["found"])
    assert "latency-chart" in heights
    assert {name: height for name, height in heights.items() if height > 194 / 25.4 * 96} == {}
