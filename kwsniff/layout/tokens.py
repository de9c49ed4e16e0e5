"""The words of a layout line: types, meanings, version ranges, tags, and the error for invalid ones."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final, NoReturn

from kwsniff.errors import LayoutError
from kwsniff.layout.meaning import WORDS, Meaning
from kwsniff.layout.model import OPEN, Versions

FIXED: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "uint32": 4,
    "float64": 8,
    "uuid": 16,
}
VARIABLE: Final = frozenset({"varint", "varlong", "uvarint"})
SIZED: Final = frozenset({"string", "string16", "bytes", "records"})
_TYPES: Final = frozenset(FIXED) | VARIABLE | SIZED | {"rest"}

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_RANGE: Final = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?\Z")
_TYPE: Final = re.compile(r"(\[\]|\{\}|\[[a-z0-9]+\]|[a-z0-9]+)(\?(?:\d.*)?)?\Z")
_MEANING: Final = re.compile(r"([a-z][a-z_]*)(?:\.([a-z][a-z0-9_]*))?\Z")


# Meanings of coded values without enum.NAME.
_ENUM_OF: Final = {Meaning.ISOLATION: "isolation_level", Meaning.KEY_TYPE: "coordinator_type"}


def fail(file: str, line: int, text: str) -> NoReturn:
    """Raise the only error of this package."""
    raise LayoutError(f"{file}:{line}: {text}")


@dataclass(slots=True)
class Draft:
    """A field line before version ranges are resolved against the parent's."""

    indent: int
    line: int
    name: str
    type: str
    array: bool
    null: str | None
    meaning: Meaning
    enum: str
    versions: str | None
    tag: int | None
    default: str | None
    children: list["Draft"] = dataclass_field(default_factory=list)


def read_field(file: str, words: list[str], indent: int, number: int) -> Draft:
    if len(words) < 2:
        fail(file, number, f"'{words[0]}' has no type")
    name, type_word, *rest = words
    if not _NAME.match(name):
        fail(file, number, f"'{name}' is not a snake_case name")
    kind, array, null = _read_type(file, type_word, number)
    draft = Draft(indent, number, name, kind, array, null, Meaning.NONE, "", None, None, None)
    if rest and _MEANING.match(rest[0]) and rest[0] != "tag":
        draft.meaning, draft.enum = _read_meaning(file, rest.pop(0), number)
    if rest and rest[0][0].isdigit():
        draft.versions = rest.pop(0)
    if len(rest) >= 2 and rest[0] == "tag":
        draft.tag = read_number(file, rest[1], number)
        rest = rest[2:]
        if len(rest) == 2 and rest[0] == "=":
            draft.default = rest[1]
            rest = []
    if rest:
        fail(file, number, f"'{rest[0]}' is neither a meaning, versions nor a tag in its place")
    return draft


def _close(word: str, words: Iterable[str]) -> str:
    from difflib import get_close_matches  # needed for an error message only

    found = get_close_matches(word, words, 1)
    return f" (did you mean {found[0]}?)" if found else ""


def _read_type(file: str, word: str, number: int) -> tuple[str, bool, str | None]:
    found = _TYPE.match(word)
    base, null = (found[1], found[2]) if found else (word, None)
    array = base.startswith("[")
    kind = "struct" if base in ("[]", "{}") else base.strip("[]")
    if not found or (kind != "struct" and kind not in _TYPES):
        hint = _close(kind, _TYPES)
        fail(file, number, f"'{word}' is not a known type" + hint)
    if array and kind not in FIXED and kind not in ("struct", "string", "bytes"):
        fail(
            file,
            number,
            f"'{word}': an array's elements are structs, strings, bytes or of fixed size",
        )
    if null and not array and kind not in SIZED and kind != "struct":
        fail(file, number, f"'{word}': a {kind} cannot be null")
    return kind, array, null


def _read_meaning(file: str, word: str, number: int) -> tuple[Meaning, str]:
    found = _MEANING.match(word)
    meaning = WORDS.get(found[1]) if found else None
    enum = (found[2] or "") if found else ""
    if meaning is None:
        hint = _close(word, WORDS)
        fail(
            file,
            number,
            f"'{word}' is not a known meaning" + hint,
        )
    if (meaning is Meaning.ENUM) != bool(enum):
        fail(file, number, f"'{word}': an enum is written enum.NAME, and only enums have a name")
    return meaning, enum or _ENUM_OF.get(meaning, "")


def read_number(file: str, word: str, number: int) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 10):
        fail(file, number, f"'{word}' is not a number")
    return int(word)


def read_versions(file: str, word: str, number: int, last: int) -> Versions:
    found = _RANGE.match(word)
    if not found:
        fail(file, number, f"'{word}' is not a version range (3, 3+ or 3-7)")
    first = int(found[1])
    if found[2]:
        return Versions(first, last)
    end = int(found[3]) if found[3] else first
    if end < first:
        fail(file, number, f"'{word}' ends before it begins")
    return Versions(first, end)


def read_version_list(file: str, word: str, number: int) -> tuple[int, ...]:
    spans = [read_versions(file, part, number, OPEN) for part in word.split(",")]
    versions = sorted({v for span in spans for v in range(span.first, min(span.last, span.first + 999) + 1)})
    if any(span.last == OPEN for span in spans) or not versions:
        fail(file, number, f"'{word}': the versions of a message need an upper end")
    return tuple(versions)
