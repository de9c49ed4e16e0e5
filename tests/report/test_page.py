"""The HTML report: in a browser, with names that are markup, and where it cannot write."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed")

import kwsniff
from kwsniff.atomic_file import write_atomically
from kwsniff.cli.main import run
from kwsniff.errors import OutputError
from kwsniff.findings.context import describe_basis, list_not_seen
from kwsniff.findings.evaluate import evaluate, fetch
from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.findings.views import open_folder, open_tables
from kwsniff.report.rebalances import make_rebalances
from kwsniff.report.report import write_report
from kwsniff.report.section import MOST_LETTERS, text
from kwsniff.report.span import find_span
from kwsniff.report.time_parts import make_time_parts
from kwsniff.tables.stored_files import files_of_tables

from .browser import ask, needs_chromium

pytestmark = pytest.mark.sample_tests(8)

ROOT = Path(__file__).parents[2]
INCIDENTS = ROOT / "captures" / "incidents"
LARGEST = 400_000

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg/onload=alert(3)>",
    "<!--<script>",
    "$$\\frac{1}{2}$$",
    "\\(x\\) \\[y\\]",
    "{{ 7*7 }}{% raw %}&amp;&lt;b&gt;",
    "\u202egnp.exe\u2028\x00\x1b[31m",
    "javascript:alert(4)",
    "https://example.org/x.png",
    "@{name}{safe} ]]>",
)
"""Names that are text, whatever they look like."""
_NAMES = (
    "client_id", "topic", "group_id", "reason_member", "first_member", "last_member", "error_message",
    "capture",
)  # fmt: skip


def incident(name: str) -> list[str]:
    return [str(path) for path in sorted((INCIDENTS / name).glob("*.pcap"))[:1]]


def make_page(folder: Path, page: Path, **options: Any) -> Path:
    """As `why --html` makes it: of the rules that are worth asking."""
    database = open_folder(folder)
    basis = describe_basis(database)
    findings = evaluate(database, rules=figures_of(files_of_tables(folder)).worth_asking())
    with write_atomically(page) as file:
        write_report(file, database, findings, basis=basis, not_seen=list_not_seen(basis), **options)
    return page


@pytest.fixture(scope="module")
def stalled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a broker that stood still."""
    folder = tmp_path_factory.mktemp("stalled")
    kwsniff.analyze(incident("broker_stalled"), output=folder)
    return folder


@pytest.fixture(scope="module")
def page(stalled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_page(stalled, tmp_path_factory.mktemp("page") / "why.html")


def given(names: list[Any], place: int) -> list[str | None]:
    """A hostile name for each name, the same for the same."""
    seen: dict[str, str] = {}
    for name in names:
        if name is not None and name not in seen:
            seen[name] = f"{HOSTILE[(len(seen) + place) % len(HOSTILE)]} {len(seen)}"
    return [None if name is None else seen[name] for name in names]


def rename(table: pa.Table, place: int) -> pa.Table:
    """The table with each of its names replaced by a hostile one."""
    for name in _NAMES:
        if name in table.column_names:
            values = given(table[name].to_pylist(), place)
            table = table.set_column(
                table.column_names.index(name), table.schema.field(name), pa.array(values, pa.string())
            )
    for name in ("members", "topics"):
        if name in table.column_names:
            lists = [
                None if each is None else list(HOSTILE[: len(each) + 1]) for each in table[name].to_pylist()
            ]
            table = table.set_column(
                table.column_names.index(name),
                table.schema.field(name),
                pa.array(lists, pa.list_(pa.string())),
            )
    return table


@needs_chromium
def test_nothing_is_fetched_and_nothing_goes_wrong(page: Path, tmp_path: Path) -> None:
    found = ask(page, tmp_path, "async () => document.querySelectorAll('.chart > *').length")
    assert found["trouble"] == []
    assert found["fetched"] == []
    assert found["found"] >= 6


@needs_chromium
def test_one_click_leads_from_a_claim_to_its_calls(page: Path, stalled: Path, tmp_path: Path) -> None:
    database = open_folder(stalled)
    first = evaluate(database, rules=figures_of(files_of_tables(stalled)).worth_asking())[0]
    found = ask(
        page, tmp_path, """async () => {
          const claim = document.querySelector("article");
          const rows = () => [...claim.querySelectorAll("tbody tr")].filter((row) => row.checkVisibility());
          const before = rows().length;
          claim.querySelector("summary").click();
          return {before, calls: rows().map((row) => row.cells[0].textContent),
                  commands: rows().map((row) => row.cells[10].textContent)};
        }""",
    )["found"]  # fmt: skip
    assert found["before"] == 0
    assert [int(each) for each in found["calls"]] == first.call_ids
    (capture,) = {row["capture"] for row in fetch(database, "select capture from captures")}
    assert found["commands"] == [f"kwsniff show {capture} --call {each}" for each in first.call_ids]


@pytest.mark.slow
@needs_chromium
def test_a_marked_stall_leads_to_its_proof_and_the_keyboard_gets_there(page: Path, tmp_path: Path) -> None:
    found = ask(
        page, tmp_path,
        """async () => {
          const link = document.querySelector("#latency .links a");
          link.focus();
          const reached = document.activeElement === link;
          link.click();
          await new Promise((done) => setTimeout(done, 100));
          const wanted = [...document.querySelectorAll("summary, .scroll, nav a")];
          const shut = wanted.filter((each) => each.tabIndex < 0).length;
          return {reached, open: document.querySelector(link.hash + " details").open, shut};
        }""",
    )["found"]  # fmt: skip
    assert found == {"reached": True, "open": True, "shut": 0}


@needs_chromium
@pytest.mark.sample(1)
@pytest.mark.parametrize(("scheme", "dark"), [(0, True), (1, False)])
def test_charts_follow_light_and_dark(page: Path, tmp_path: Path, scheme: int, dark: bool) -> None:
    found = ask(
        page, tmp_path,
        """async () => {
          const areas = [...document.querySelectorAll(".drawing svg")];
          const parts = (colour) => colour.match(/\\d+/g).slice(0, 3).map(Number);
          const brightness = (colour) => parts(colour).reduce((sum, each) => sum + each, 0);
          return {page: brightness(getComputedStyle(document.body).backgroundColor),
                  areas: [...new Set(areas.map((each) => getComputedStyle(each).backgroundColor))]
                    .map(brightness)};
        }""",
        f"--blink-settings=preferredColorScheme={scheme}",
    )["found"]  # fmt: skip
    (ground,) = found["areas"]
    assert (found["page"] < 200) is dark
    assert (ground < 200) is dark


@needs_chromium
def test_a_narrow_screen_has_nothing_beside_it(page: Path, tmp_path: Path) -> None:
    script = """async () => {
      document.body.style.cssText = "margin: 0; width: 400px";
      await new Promise((done) => setTimeout(done, 500));
      const shown = [...document.querySelectorAll("main *")];
      const free = shown.filter((each) => !each.parentElement.closest(".scroll"));
      const wide = free.filter((each) => each.getBoundingClientRect().right > 401);
      return wide.map((each) => each.outerHTML.slice(0, 80));
    }"""
    assert ask(page, tmp_path, script)["found"] == []


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("name", ["broker_stalled", "rebalance_storm", "not_authorized", "throttled"])
def test_names_from_the_wire_are_text(name: str, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    kwsniff.analyze(incident(name), output=tables)
    plain = make_page(tables, tmp_path / "plain.html")
    for place, file in enumerate(sorted(tables.glob("*.parquet"))):
        pq.write_table(rename(pq.read_table(file), place if file.stem == "captures" else 0), file)
    clients = {
        row["client_id"] for row in fetch(open_folder(tables), "select distinct client_id from api_calls")
    }
    hostile = make_page(tables, tmp_path / "hostile.html", upgrade=("<b>4.3.1</b>", UPGRADE))
    script = """async () => {
      for (const each of document.querySelectorAll("details")) each.open = true;
      const count = (name) => document.querySelectorAll(name).length;
      const tags = ["script", "img", "svg", "b b", "iframe", "base", "object"].map(count);
      return {text: document.body.innerText, tags};
    }"""
    before = ask(plain, tmp_path, script)
    after = ask(hostile, tmp_path, script)
    assert after["trouble"] == []
    assert after["fetched"] == []
    assert after["found"]["tags"] == before["found"]["tags"]
    shown = re.sub(r"\s+", " ", after["found"]["text"])
    told = [each for each in clients if each and each.isprintable()]
    assert told
    assert [each for each in told if re.sub(r"\s+", " ", each) not in shown] == []


UPGRADE = [
    {
        "client_id": "<i>old</i>", "client_address": "10.0.0.9", "software": "sarama 1.0",
        "verdict": "breaks",
        "reasons": [
            {
                "api_name": "Produce", "api_version": 2, "min_version": 3, "max_version": 13, "calls": 7,
                "call_id": 12000, "frame": 12,
            }
        ],
        "not_tested": ["Fetch"],
    }
]  # fmt: skip


def test_the_upgrade_table_shows_what_it_is_given(page: Path, stalled: Path, tmp_path: Path) -> None:
    text = make_page(stalled, tmp_path / "why.html", upgrade=("4.3.1", UPGRADE)).read_text("utf-8")
    assert "Upgrade to 4.3.1" in text
    assert "&lt;i&gt;old&lt;/i&gt;" in text
    assert "Produce v2 in 7 calls, the release accepts 3 to 13 (call 12000, packet 12)" in text
    assert "Upgrade to" not in page.read_text("utf-8")


def test_the_parts_of_a_page_add_up_to_what_calls_took(stalled: Path) -> None:
    database = open_folder(stalled)
    span = find_span(database)
    assert span is not None
    (chart, waits) = make_time_parts(database, span).charts
    drawings = [*chart.drawings, *waits.drawings]
    marks = [mark for each in drawings for mark in each.marks]
    drawn = sum(box.top - box.bottom for mark in marks for box in mark.boxes)
    took = fetch(database, "select sum(total_ns)::double as took from latencies")[0]["took"]
    assert drawn * span.width * 1000 == pytest.approx(took, rel=0.01)


def test_rebalances_are_drawn_with_the_reasons_of_their_rows(tmp_path: Path) -> None:
    kwsniff.analyze(incident("session_expired"), output=tmp_path)
    database = open_folder(tmp_path)
    (chart,) = make_rebalances(database, find_span(database)).charts
    told = {row["reason"] for row in fetch(database, "select reason from groups")}
    assert "session_expired" in told
    assert {words for _, words in chart.legend} == {reason.replace("_", " ") for reason in told}


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    database = open_tables({})
    basis = describe_basis(database)
    page = tmp_path / "why.html"
    with write_atomically(page) as file:
        findings = evaluate(database, rules=Figures().worth_asking())
        write_report(file, database, findings, basis=basis, not_seen=list_not_seen(basis))
    found = ask(page, tmp_path, "async () => document.body.innerText")
    assert found["trouble"] == []
    assert "The capture has no Kafka calls." in found["found"]


def test_a_file_stays_small(page: Path) -> None:
    assert page.stat().st_size < LARGEST


def why(*arguments: str | Path, begin: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{begin}\nimport sys; from kwsniff.cli.main import run; sys.exit(run(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, "why", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_the_command_writes_the_page_and_still_tells_the_status(tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    page.write_text("of before")
    done = why(*incident("broker_stalled"), "--html", page)
    assert (done.returncode, done.stderr) == (1, "")
    assert "broker_stalled" in done.stdout
    written = page.read_text("utf-8")
    assert written.rstrip().endswith("</html>")
    assert '<section id="upgrade"' in written
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("place", ["missing/why.html", ".", "file/why.html"])
def test_a_place_that_cannot_be_written_is_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = why(*incident("broker_stalled"), "--html", tmp_path / place)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / place).removesuffix("/.") in done.stderr


def test_a_run_that_fails_leaves_the_page_of_before(tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    page.write_text("of before")
    done = why(tmp_path / "no.pcap", "--html", page)
    assert done.returncode == 2
    assert page.read_text() == "of before"
    assert list(tmp_path.iterdir()) == [page]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    place = tmp_path / "why.html"
    with pytest.raises(OutputError, match="cannot write"), write_atomically(place) as file:
        file.write("x")
        place.mkdir()  # what takes the name meanwhile
        (place / "file").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == ["why.html"]


@pytest.mark.slow
def test_a_disk_that_gets_full_while_the_page_is_written_is_one_line(tmp_path: Path) -> None:
    """A file may be so large and no larger, as a disk may."""
    page = tmp_path / "why.html"
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000)); "
    limit += "sys.dont_write_bytecode = True"
    told = why(*incident("broker_stalled"), "--html", page, begin=limit)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "cannot write" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_and_stays_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = tmp_path / "read.html"
    with read.open("wb") as file, subprocess.Popen(["cat", pipe], stdout=file) as reader:
        try:
            status = run(["why", *incident("broker_stalled"), "--html", str(pipe)])
            reader.wait(60)
        finally:
            reader.kill()
    assert (status, capsys.readouterr().err) == (1, "")
    assert read.read_text("utf-8").rstrip().endswith("</html>")
    assert pipe.is_fifo()


@pytest.mark.slow
def test_a_link_to_a_page_stays_a_link(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.html", tmp_path / "link.html"
    kept.write_text("of before")
    link.symlink_to(kept)
    assert run(["why", *incident("broker_stalled"), "--html", str(link)]) == 1
    assert link.is_symlink()
    assert kept.read_text("utf-8").rstrip().endswith("</html>")


def test_a_field_is_no_longer_than_a_few_lines() -> None:
    whole = "orders-" + "x" * 30_000 + "-end"
    shown = text(whole).text
    assert len(shown) <= MOST_LETTERS
    assert shown.startswith("orders-x")
    assert shown.endswith("x-end")
    assert text("orders").text == "orders"
    assert text(None).text == ""
