"""Commands that findings name, as a shell takes them, whatever names from the wire have in them."""

import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

_PLACES: Final = ("{capture}", "{tables}")
_SPECIAL: Final = frozenset('\\`$"!')  # inside double quotes


def write_command(template: str, said: Mapping[str, Any]) -> str:
    """The command of a rule with what it names in braces.

    `capture` and `tables` are already quoted for a shell. Text between single quotes is an SQL literal.
    """
    words: list[str] = []
    for part in _parts(template):
        if part in _PLACES:
            words.append(part.format_map(said))
            continue
        if "{" not in part:
            words.append(_quote(part))
            continue
        values = {
            name: value.replace("'", "''") if f"'{{{name}" in part and isinstance(value, str) else value
            for name, value in said.items()
        }
        word = part.format_map(values)
        if word != part and word.startswith("-"):  # no option: a name
            words[-1] += f"={_quote(word)}"
        else:
            words.append(_quote(word))
    return " ".join(words)


@cache
def _parts(template: str) -> list[str]:
    """The words of a template, of which there is one for each rule."""
    return shlex.split(template)


def _quote(word: str) -> str:
    if "'" in word and _SPECIAL.isdisjoint(word):
        return f'"{word}"'
    return shlex.quote(word)
