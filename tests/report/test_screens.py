"""A page on a small screen, by keyboard, and its tables by a click."""

import json
from pathlib import Path

import pytest

import kwsniff

from .browser import ask, needs_chromium, run_chromium
from .test_page import incident, make_page


@pytest.mark.slow
@needs_chromium
def test_a_telephone_has_no_second_direction_to_scroll_and_tab_leads_down_the_page(tmp_path: Path) -> None:
    kwsniff.analyze(incident("poll_interval_exceeded"), output=tmp_path / "tables")
    make_page(tmp_path / "tables", tmp_path / "why.html")
    outer = tmp_path / "outer.html"
    outer.write_text("""<iframe src="why.html" style="width: 360px; height: 640px; border: 0"></iframe>
      <pre></pre><script>setTimeout(() => {
        const page = document.querySelector("iframe").contentDocument;
        const root = page.documentElement;
        const reached = [...page.querySelectorAll("a[href], button, summary, input, select, [tabindex]")]
          .filter((each) => each.tabIndex >= 0 && each.checkVisibility());
        const places = reached.map((each) => each.getBoundingClientRect().top);
        document.querySelector("pre").textContent = JSON.stringify({
          charts: page.querySelectorAll(".chart").length, over: root.scrollWidth - root.clientWidth,
          first: reached[0].textContent, ahead: reached.filter((each) => each.tabIndex > 0).length,
          down: places.slice(2).every((top, place) => top >= places[place + 1]),
        });
      }, 2000);
    </script>""", "utf-8")  # fmt: skip
    done = run_chromium(outer, tmp_path, "--allow-file-access-from-files", "--dump-dom")
    found = json.loads(done.stdout.rsplit("<pre>", 1)[1].split("</pre>")[0])
    assert found.pop("charts") > 3
    assert found == {"over": 0, "first": "Skip to the first section", "ahead": 0, "down": True}


@needs_chromium
def test_a_table_sorts_by_its_figures_and_shows_the_rows_with_a_word(tmp_path: Path) -> None:
    kwsniff.analyze(incident("broker_stalled"), output=tmp_path / "tables")
    page = make_page(tmp_path / "tables", tmp_path / "why.html")
    found = ask(
        page, tmp_path, """async () => {
          const table = [...document.querySelectorAll("#digest table")].at(-1);
          const heads = [...table.tHead.rows[0].cells];
          const column = heads.findIndex((each) => each.textContent === "time");
          const api = heads.findIndex((each) => each.textContent === "API");
          const rows = table.tBodies[0].rows;
          const values = () => [...rows].map((row) => Number(row.cells[column].dataset.value));
          heads[column].querySelector("button").click();
          const up = values();
          heads[column].querySelector("button").click();
          const filter = table.closest(".scroll").previousElementSibling;
          filter.value = "FETCH";
          filter.dispatchEvent(new Event("input"));
          const left = [...rows].filter((row) => row.checkVisibility());
          return {up, down: values(), order: heads[column].getAttribute("aria-sort"),
                  left: left.length, words: left.every((row) => row.textContent.includes("Fetch"))};
        }""",
    )["found"]  # fmt: skip
    assert found["up"] == sorted(found["up"])
    assert len({*found["up"]}) > 2
    assert found["down"] == found["up"][::-1]
    assert found["order"] == "descending"
    assert found["words"]
    assert 0 < found["left"] < len(found["up"])
