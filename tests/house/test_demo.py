"""The pictures of README show what the tool says today."""

import re
from html import unescape

from .demo import COMMANDS, REPORT, SESSION, make_session
from .tree import ROOT


def texts(drawn: str) -> list[str]:
    return [unescape(each) for each in re.findall(r"<text [^>]*session-line[^>]*>([^<]*)</text>", drawn)]


def test_the_session_shows_what_the_commands_write_today() -> None:
    kept = SESSION.read_text("utf-8")
    assert texts(kept) == texts(make_session())
    words = " ".join(" ".join(texts(kept)).replace("\xa0", " ").split())
    assert "broker_stalled" in words
    assert [each for each in COMMANDS if each not in words] == []


def test_without_animation_all_lines_are_visible() -> None:
    """Only the animation hides a line, and only before it begins."""
    kept = SESSION.read_text("utf-8")
    assert re.findall(r"opacity: ?0", kept) == ["opacity: 0"]
    assert "@keyframes appear { from { opacity: 0; } }" in kept
    assert "http" not in kept.replace("http://www.w3.org/2000/svg", "")


def test_readme_shows_both_with_a_text() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for picture in (SESSION, REPORT):
        assert re.search(rf"!\[[^\]]{{20,}}\]\({picture.relative_to(ROOT)}\)", readme)
    assert REPORT.read_bytes().startswith(b"\x89PNG")
