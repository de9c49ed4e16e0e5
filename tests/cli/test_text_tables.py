"""The summary in terminals of any width: no line too long, no word broken, names whole."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.summary.summary import show_summary
from kwsniff.cli.text_tables import Grid, fit, plain, shorten, wrap

ROOT = Path(__file__).parents[2]
RECORDED = ("first_steps", "throttled", "transactions", "snaplen_96", "refusals", "three_brokers")
WIDTHS = (60, 80, 100, 200)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def recorded(name: str) -> Path:
    (path,) = (ROOT / "captures" / name).glob("capture.pcap*")
    return path


ON_TERMINALS = """
import fcntl, struct, sys, termios
from kwsniff.cli.main import run

for width in sys.argv[2:]:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(width), 0, 0))
    run(["analyze", "--no-progress", "--top", "30", sys.argv[1], "-o", "out"])
    print("=" * 9, flush=True)
"""


def on_terminals(capture: Path) -> dict[int, list[str]]:
    """Width -> lines of the summary on a terminal of this width, without its styles."""
    main, side = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINALS, capture, *map(str, WIDTHS)],
        stdin=side,
        stdout=side,
        env={**environment, "TERM": "xterm"},
    )
    os.close(side)
    shown = b""
    while True:
        try:
            shown += os.read(main, 65536)
        except OSError:
            break
    os.close(main)
    assert process.wait() == 0
    *texts, rest = ESCAPES.sub("", shown.decode()).split("=" * 9)
    assert rest.strip() == ""
    return {width: text.splitlines() for width, text in zip(WIDTHS, texts, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_a_summary_fits_its_terminal(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By a short name: where the repository lies may be longer than a line.
    capture = Path(recorded(name).name)
    shutil.copy(recorded(name), tmp_path / capture)
    monkeypatch.chdir(tmp_path)
    facts = kwsniff.analyze(capture).summary
    # What is shown is made of the words that a pipe gets, which has room for all of them: none is broken.
    out = io.StringIO()
    show_summary({**facts, "tables": {}}, out, top=30)
    names = {item["client_id"] for item in facts["clients"]} | {item["topic"] for item in facts["errors"]}
    names |= {item["error_name"] for item in facts["errors"]} | {item["api_name"] for item in facts["calls"]}
    names |= {item["transactional_id"] for item in facts["transactions"]}
    for width, lines in on_terminals(capture).items():
        assert max(map(len, lines)) <= width
        shown = "\n".join(lines)
        summary = re.sub(r"^\d+ tables with .*?\bout\n", "", shown, flags=re.MULTILINE | re.DOTALL)
        summary = re.sub(
            r"^columns that do not fit in .*?to\s+see\s+all$", "", summary, flags=re.MULTILINE | re.DOTALL
        )
        assert set(summary.split()) - set(out.getvalue().split()) <= {
            word for word in summary.split() if "─" in word
        }
        for each in filter(None, names):
            assert re.search(rf"\b{re.escape(each)}\b", shown), (width, each)
        assert width < 200 or "do not fit" not in shown


def test_columns_go_by_importance_and_names_stay() -> None:
    rows = [("7", "a-client-of-some-length", "12 ms", "one thing and another"), ("8", "b", "3 ms", "none")]
    grid = Grid("T", ("count", "name", "max", "meaning"), rows, ("name", "max", "meaning"), "T without")
    assert list(plain(grid)) == [
        "  count  name                       max  meaning",
        "      7  a-client-of-some-length  12 ms  one thing and another",
        "      8  b                         3 ms  none",
    ]
    assert fit(grid, 62).lines == list(plain(grid))
    narrow = fit(grid, 50)
    assert narrow.lines == [
        "  count  name                       max  meaning",
        "      7  a-client-of-some-length  12 ms  one thing",
        "                                         and",
        "                                         another",
        "      8  b                         3 ms  none",
    ]
    least = fit(grid, 32)
    assert (least.title, least.left_out) == ("T without", ["count", "meaning"])
    assert least.lines[1] == "  a-client-of-some-length  12 ms"
    assert fit(grid, 27).lines[1] == "  a-client-…e-length  12 ms"
    assert fit(grid, 12).lines[1] == "  a-cli…ngth"


def test_long_words_keep_both_ends_and_sentences_their_words() -> None:
    assert shorten("/var/a/long/path.parquet", 11) == "/var/…rquet"
    assert shorten("short", 5) == "short"
    assert wrap("  one two three", 9, indent="    ") == ["  one two", "    three"]
    assert wrap("x" * 30, 10) == ["xxxxx…xxxx"]
