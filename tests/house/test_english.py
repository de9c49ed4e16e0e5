"""Texts are in the words of a vendor's manual: the actor named, the field's noun, active voice.

The list is short on purpose. A word is on it because the code was once full of it, because no sentence needs
it, and because a plainer word is always at hand. Usage that a pattern cannot judge is left to reviews.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .tree import ROOT, relative, tracked_files

WORDS = {
    r"nobody|somebody|anybody|whoever": "hides the actor: name the client, broker, user or process",
    r"told": "data does not talk, and the pattern is passive: 'the response has', 'the client received'",
    r"anew|afresh": "archaic: 'again', or a verb with re-",
    r"mend(s|ed|ing)?": "archaic: 'fix'",
    r"goes on|went on|go on|going on": "vague: 'continues', 'in progress'",
    r"so (many|long|much)(?! (that|as)\b)": "points at a number without naming it: 'this number of'",
    r"at once": "two meanings: 'immediately', or 'at the same time'",
    r"for good|all the same": "two meanings: 'permanently' or 'usefully'; 'anyway' or 'identical'",
    r"ha(s|ve) to act": "says what the field calls an owner: 'owner: broker'",
    r"stands?|stood": "nothing here has feet: 'is', 'means', 'waits', 'stalls'",
    r"(?<!there )(is|are) no (?!longer|more\b)": "inverts the sentence: 'is not a', 'does not have'",
    r"under way": "say which: 'in flight' of requests, 'in progress' of work",
    r"in the place of|in place of answering": "wordy: 'instead of'",
    r"makes? no sense": "blames without a reason: 'invalid', 'conflicts with'",
}
"""Pattern, of whole words -> why it is not used, and what to write."""

RECORDS = {
    "CHANGELOG.md": "what releases said",
    "captures/README.md": "what was done, as noted when it was recorded",
}
"""Pages that are not rewritten, and why."""

FORBIDDEN = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_NAMES = re.compile(r"`[^`\n]*`")
"""Names of code inside a text: renaming them is another matter."""
_CYTHON = re.compile(r"""\"{3}[\s\S]*?\"{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*""")
"""Strings and comments of a .pyx or .pxd file, which Python cannot parse; the rest is names, too."""
_SQL = re.compile(r"\b(select|insert|create|with|order by|from)\b[\s\S]*\b(from|values|as|limit|temp|desc)\b")
_SQL_COMMENT = re.compile(r"--[^\n]*(?:\n\s*--[^\n]*)*")


def _texts_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of comments, and of strings that are sentences; SQL has names, not words."""
    source = path.read_text("utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and not _SQL.search(node.value)
        ):
            yield node.lineno, node.value


def _texts_of_cython(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of comments, docstrings and other strings."""
    source = path.read_text("utf-8")
    for found in _CYTHON.finditer(source):
        yield source.count("\n", 0, found.start()) + 1, found[0]


def _texts_of_toml(path: Path) -> Iterator[tuple[int, str]]:
    rule = tomllib.loads(path.read_text("utf-8"))
    for name in ("does", "matters", "silent", "timeline", "text", "advice"):
        yield 0, re.sub(r"{[^}]*}", "", rule[name])
    for text in rule["mistaken_for"].values():
        yield 0, text
    for quoted in re.findall(r"'([^'\n]* [^'\n]*)'", rule["query"]):
        if not _SQL.search(quoted):
            yield 0, quoted
    for comment in _SQL_COMMENT.findall(rule["query"]):
        yield 0, comment


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix in (".py", ".pyi"):
        yield from _texts_of_python(path)
    elif path.suffix in (".pyx", ".pxd"):
        yield from _texts_of_cython(path)
    elif path.suffix == ".sql":
        for found in _SQL_COMMENT.finditer(source := path.read_text("utf-8")):
            yield source.count("\n", 0, found.start()) + 1, found[0]
    elif path.suffix == ".toml":
        yield from _texts_of_toml(path)
    else:
        yield from enumerate(path.read_text("utf-8").splitlines(), 1)


def _files() -> Iterator[Path]:
    for folder, ends in (
        ("kwsniff", (".py", ".pyi", ".pyx", ".pxd", ".toml", ".sql")),
        ("dissectors", (".txt", ".layout")),
    ):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ends and "public_settings" not in path.name:
                yield path
    pages = (path for path in tracked_files() if path.suffix == ".md")
    yield from (path for path in pages if relative(path) not in RECORDS)


def _found(paths: Iterator[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r}"
        for path in paths
        for line, text in _texts(path)
        for found in FORBIDDEN.finditer(" ".join(_NAMES.sub("", text).split()))
    ]


def test_texts_have_none_of_the_words() -> None:
    assert _found(_files()) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("whoever runs the broker", "whoever"),
        ("the broker has to act", "has to act"),
        ("it goes on without it", "goes on"),
        ("this is no capture", "is no "),
        ("there is no capture here, which is no longer read", None),
        ("the standard error is a standalone file", None),
    ],
)
def test_whole_words_are_found(text: str, word: str | None) -> None:
    found = FORBIDDEN.search(text)
    assert (found and found[0]) == word


def test_names_of_compiled_code_are_not_words_and_texts_are(tmp_path: Path) -> None:
    path = tmp_path / "one.pyx"
    path.write_text('cdef int told = 1  # nobody asks\n"""It goes\non."""\nsay("it\'s anew", told, \'"\')\n')
    found = [
        (line, word[0]) for line, text in _texts(path) for word in FORBIDDEN.finditer(" ".join(text.split()))
    ]
    assert found == [(1, "nobody"), (2, "goes on"), (4, "anew")]
