"""For mkdocs: pages that lie outside docs/ come along, and links between pages lead to where these are."""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
OUTSIDE: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "captures/README.md": "captures.md",
    "dissectors/README.md": "dissectors.md",
}
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """A link to a page leads to its place; one to a file that is no page is its text."""
    places = {place: source for source, place in OUTSIDE.items()}
    folder = posixpath.dirname(places.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def moved(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        there = posixpath.normpath(posixpath.join(folder, path))
        if there in OUTSIDE:
            found = OUTSIDE[there]
        elif there.startswith("docs/") and there.endswith(".md"):
            found = there.removeprefix("docs/")
        elif f"{there}/README.md" in OUTSIDE:
            found = OUTSIDE[f"{there}/README.md"]
        else:
            return text
        return f"[{text}]({posixpath.relpath(found, posixpath.dirname(page.file.src_uri))}{hash_}{anchor})"

    return _LINK.sub(moved, markdown)
