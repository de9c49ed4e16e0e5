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

from .tree import ROOT

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

NOT_YET = {
    "kwsniff/core": "comments and docstrings of compiled modules and their Python: not yet rewritten",
}
"""Files and folders, and why the words may still occur there. Each must have one: the list only shrinks."""

FORBIDDEN = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_NAMES = re.compile(r"`[^`\n]*`")
"""Names of code inside a text: renaming them is another matter."""
_SQL = re.compile(r"\b(select|insert|create|with|order by|from)\b[\s\S]*\b(from|values|as|limit|temp|desc)\b")


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


def _texts_of_toml(path: Path) -> Iterator[tuple[int, str]]:
    for rule in tomllib.loads(path.read_text("utf-8"))["rule"]:
        for name in ("says", "text", "advice"):
            yield 0, re.sub(r"{[^}]*}", "", rule[name])
        for quoted in re.findall(r"'([^'\n]* [^'\n]*)'", rule["query"]):
            if not _SQL.search(quoted):
                yield 0, quoted


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        yield from _texts_of_python(path)
    elif path.suffix == ".toml":
        yield from _texts_of_toml(path)
    else:
        yield from enumerate(path.read_text("utf-8").splitlines(), 1)


def _files() -> Iterator[Path]:
    for folder, ends in (("kwsniff", (".py", ".pyx", ".pxd", ".toml")), ("dissectors", (".txt", ".layout"))):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ends and "public_settings" not in path.name:
                yield path


def _found(paths: Iterator[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r}"
        for path in paths
        for line, text in _texts(path)
        for found in FORBIDDEN.finditer(" ".join(_NAMES.sub("", text).split()))
    ]


def _is_open(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(name == each or name.startswith(f"{each}/") for each in NOT_YET)


def test_texts_have_none_of_the_words() -> None:
    assert _found(path for path in _files() if not _is_open(path)) == []


@pytest.mark.parametrize("name", NOT_YET)
def test_what_is_clean_is_not_listed_as_open(name: str) -> None:
    place = ROOT / name
    assert _found(path for path in _files() if path == place or place in path.parents)


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
