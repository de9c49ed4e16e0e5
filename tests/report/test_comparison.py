"""The page of a comparison: in a browser, with names that are markup, and where it cannot be written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli.main import DONE, FAILED, run

from .browser import ask, needs_chromium
from .test_page import HOSTILE, ROOT, rename

CLOCKS = ROOT / "captures" / "clocks"
GOOD, BAD = (str(CLOCKS / name / "broker.pcap") for name in ("near", "quota"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "compare.html"
    assert run(["compare", GOOD, BAD, "--html", str(path)]) == DONE
    return path


@pytest.mark.slow
@needs_chromium
def test_every_difference_leads_to_its_calls_and_nothing_is_fetched(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", GOOD, BAD, "--json"]) == DONE
    differences = json.loads(capsys.readouterr().out)["differences"]
    script = """async () => {
      const rows = [...document.querySelectorAll("#differences tbody tr")];
      return rows.map((row) => {
        const link = row.querySelector("a");
        const calls = link && [...document.querySelectorAll(link.hash + " tbody tr td:first-child")];
        const cells = [...row.cells].map((cell) => cell.textContent.trim());
        return {cells: cells.slice(0, 3), calls: calls && calls.map((cell) => Number(cell.textContent))};
      });
    }"""
    answer = ask(page, tmp_path, script)
    assert answer["trouble"] == []
    assert answer["fetched"] == []
    shown = [(*each["cells"], each["calls"]) for each in answer["found"]]
    assert shown == [
        (each["subject_kind"], each["subject"], each["what"], each["call_ids"] or None)
        for each in differences
    ]
    assert shown[0][:3] == ("client", "shop", "throttle_ms")
    assert f"kwsniff show {BAD} --call {differences[0]['call_ids'][0]}" in page.read_text("utf-8")


@pytest.mark.slow
@needs_chromium
def test_names_from_the_wire_are_text(tmp_path: Path) -> None:
    kwsniff.analyze(BAD, output=tmp_path / "tables")
    for file in (tmp_path / "tables").glob("*.parquet"):
        pq.write_table(rename(pq.read_table(file), 0), file)
    path = tmp_path / "compare.html"
    assert run(["compare", GOOD, str(tmp_path / "tables"), "--html", str(path)]) == DONE
    answer = ask(
        path, tmp_path, "async () => document.querySelectorAll('main img, main svg, main script').length"
    )
    assert answer["found"] == 0
    assert answer["trouble"] == []
    assert answer["fetched"] == []
    text = re.sub(r"<[^>]*>", "", path.read_text("utf-8"))
    assert HOSTILE[0].replace("<", "&lt;").replace(">", "&gt;") in text


def test_a_page_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", GOOD, BAD, "--html", str(tmp_path / "none" / "page.html")]) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    missing = tmp_path / "page.html"
    assert run(["compare", GOOD, str(tmp_path / "none.pcap"), "--html", str(missing)]) == FAILED
    assert list(tmp_path.iterdir()) == []


def test_without_differences_the_page_says_so(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert run(["compare", GOOD, GOOD, "--html", str(path)]) == DONE
    assert "No significant difference." in path.read_text("utf-8")
