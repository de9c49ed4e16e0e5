"""A filter's text as words, and errors that underline the place.

A word ends at a space, a quote, a comma, a parenthesis or an operator; what it means depends on the column
that it is compared with. Text in single or double quotes may contain anything; a doubled quote is a quote.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from kwsniff.errors import PlacedError

_SPACE: Final = re.compile(r"\s*")
_OPERATOR: Final = re.compile(r"<=|>=|!=|<>|==|!~|[=<>~(),]")
_WORD: Final = re.compile(r"[^\s()'\",<>=!~]+")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"")
_SAME: Final = {"==": "=", "<>": "!="}
_WIDEST: Final = 100
_BEFORE: Final = 60


class FilterError(PlacedError):
    """An invalid filter: the first line says what is wrong, the next two show the place."""

    def __init__(self, problem: str, text: str, start: int, end: int) -> None:
        self.problem = problem
        self.start, self.end = start, max(end, start + 1)
        begin = max(start - _BEFORE, 0) if len(text) > _WIDEST else 0
        shown = "".join(char if char.isprintable() else " " for char in text[begin : begin + _WIDEST])
        width = min(self.end, begin + _WIDEST) - start
        super().__init__(f"{problem}\n  {shown}\n  {' ' * (start - begin)}{'^' * max(width, 1)}")


class Token(NamedTuple):
    """`value`: the text without its quotes. `start`, `end`: its place in the filter."""

    kind: Literal["word", "text", "operator", "end"]
    value: str
    start: int
    end: int

    def is_keyword(self, *keywords: str) -> bool:
        """Whether it is one of these words; quote, a word is a text."""
        return self.kind == "word" and self.value.lower() in keywords

    def is_operator(self, *operators: str) -> bool:
        """Whether it is one of these operators."""
        return self.kind == "operator" and self.value in operators


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a filter, and one of kind `end`. Raises FilterError."""
    at = 0
    while True:
        at = _end(_SPACE.match(text, at), at)
        if at == len(text):
            yield Token("end", "", at, at)
            return
        if text[at] in "'\"":
            found = _QUOTED.match(text, at)
            if found is None:
                raise FilterError(f"the quote {text[at]} is not closed", text, at, len(text))
            quote = text[at]
            yield Token("text", found[0][1:-1].replace(quote * 2, quote), at, found.end())
        elif found := _OPERATOR.match(text, at):
            yield Token("operator", _SAME.get(found[0], found[0]), at, found.end())
        elif found := _WORD.match(text, at):
            yield Token("word", found[0], at, found.end())
        else:
            raise FilterError(f"unexpected character '{text[at]}'", text, at, at + 1)
        at = found.end()


def _end(found: re.Match[str] | None, otherwise: int) -> int:
    return found.end() if found else otherwise


def quote(text: str) -> str:
    """A text as the language and SQL write it."""
    return "'" + text.replace("'", "''") + "'"
