"""A page on a small screen, and by keyboard."""

import json
from pathlib import Path

import pytest

import kwsniff

from .browser import needs_chromium, run_chromium
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
          drawn: root.dataset.drawn, over: root.scrollWidth - root.clientWidth,
          first: reached[0].textContent, ahead: reached.filter((each) => each.tabIndex > 0).length,
          down: places.slice(2).every((top, place) => top >= places[place + 1]),
        });
      }, 8000);
    </script>""", "utf-8")  # fmt: skip
    done = run_chromium(outer, tmp_path, "--allow-file-access-from-files", "--dump-dom")
    found = json.loads(done.stdout.rsplit("<pre>", 1)[1].split("</pre>")[0])
    assert int(found.pop("drawn")) > 3
    assert found == {"over": 0, "first": "Skip to the first section", "ahead": 0, "down": True}
