"""The pictures of README: `python -m tests.house.demo` makes docs/session.svg and docs/report.png.

The commands run in a terminal of their own, and the browser draws the page that they write.
"""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from .tree import DOCS, ROOT

SESSION: Final = DOCS / "session.svg"
REPORT: Final = DOCS / "report.png"
CAPTURE: Final = ROOT / "captures" / "incidents" / "broker_stalled" / "broker.pcap"
COMMANDS: Final = (
    "kwsniff why capture.pcap --keep tables",
    "kwsniff show capture.pcap --call 144000",
    'kwsniff sql tables "select api_name, count(*) as calls, max(latency_ns) / 1e6 as ms from api_calls '
    'group by all order by ms desc limit 3"',
)
_COLUMNS: Final = 88
_MOST_LINES: Final = 18
"""Of the output of a command; a last line says how many more there are."""
_PAUSE_S: Final = 1.2
_LINE_S: Final = 0.04
_SHOWN: Final = "#findings article + article, #account { display: none; }"
"""Style of the screenshot: the first finding and the first charts."""
_FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-matrix text {{ animation: appear 0.1s backwards; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
@keyframes appear {{ from {{ opacity: 0; }} }}
@media (prefers-reduced-motion: reduce) {{ .{unique_id}-matrix text {{ animation: none; }} }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501 - markup


def run_in_terminal(command: str, folder: Path) -> str:
    """What a command leaves on a terminal, colours included; a progress bar goes away."""
    ours, theirs = pty.openpty()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(  # noqa: S602 - our own
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ):
        os.close(theirs)
        found = b""
        while piece := _read(ours):
            found += piece
    os.close(ours)
    return found.decode().replace("\r\n", "\n").rstrip("\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux says that the other side is closed
        return b""


def make_session() -> str:
    """The session as an SVG whose lines appear one after the other."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    begins: list[float] = []
    now = 0.0
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(CAPTURE, Path(name, "capture.pcap"))
        for command in COMMANDS:
            typed = Text.assemble(("$ ", "green"), (command, "bold"))
            shown = Text.from_ansi(run_in_terminal(command, Path(name))).split("\n")
            lines = [
                *typed.wrap(console, _COLUMNS),
                *(each for one in shown for each in one.wrap(console, _COLUMNS)),
            ]
            if len(lines) > _MOST_LINES:
                lines = [*lines[:_MOST_LINES], Text(f"… {len(lines) - _MOST_LINES} more lines", "dim")]
            for line in (*lines, Text()):
                console.print(line)
                begins.append(now)
                now += _LINE_S
            now += _PAUSE_S
    drawn = console.export_svg(title="kwsniff", theme=MONOKAI, code_format=_FORMAT, unique_id="session")
    return re.sub(
        r"<text (class=\"session-r\d+\")([^>]*clip-path=\"url\(#session-line-(\d+)\)\")",
        lambda found: f'<text style="animation-delay:{begins[int(found[3])]:.2f}s" {found[1]}{found[2]}',
        drawn,
    )


def make_report(target: Path) -> None:
    """The screenshot of a report, by Chromium."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as name:
        page, shot = Path(name, "why.html"), Path(name, "shot.png")
        shutil.copy(CAPTURE, Path(name, "capture.pcap"))
        run_in_terminal("kwsniff why capture.pcap --html why.html", Path(name))
        text = page.read_text("utf-8")
        page.write_text(text.replace("</style>", _SHOWN + "</style>", 1), "utf-8")
        subprocess.run(
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--window-size=1100,1340", f"--screenshot={shot}", f"--user-data-dir={name}/profile",
                page.as_uri(),
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        with Image.open(shot) as picture:
            picture.convert("RGB").quantize(48).save(target, optimize=True)


if __name__ == "__main__":
    SESSION.write_text(make_session(), "utf-8")
    make_report(REPORT)
