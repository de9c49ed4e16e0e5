"""Layout text to model. The notation is described in dissectors/README.md.

Errors are ``LayoutError`` whose text begins with ``file:line`` and names the offending word.
"""

import re
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from difflib import get_close_matches
from typing import Final, NoReturn

from kwsniff.errors import LayoutError
from kwsniff.layout.meaning import WORDS, Meaning
from kwsniff.layout.model import OPEN, ApiRange, Field, HeaderUse, LayoutFile, Message, Section, Versions

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


def fail(file: str, line: int, text: str) -> NoReturn:
    """Raise the one kind of error this room has."""
    raise LayoutError(f"{file}:{line}: {text}")


@dataclass(slots=True)
class _Draft:
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
    children: list["_Draft"] = dataclass_field(default_factory=list)


@dataclass(slots=True)
class _Head:
    section: Section
    name: str
    versions: tuple[int, ...]
    flexible_from: int
    zigzag: bool
    number: int | None
    releases: str
    line: int
    drafts: list[_Draft] = dataclass_field(default_factory=list)


def parse_layout(text: str, file: str) -> LayoutFile:
    """Parse one layout file; ``file`` is the name used in error messages."""
    return _Parser(file).parse(text)


def parse_api_line(line: str, file: str) -> ApiRange:
    """The first line of an API's file, which is all that the index of the catalog reads."""
    words = line.split()
    if len(words) not in (4, 6) or words[0] != "api":
        fail(file, 1, "an API's file begins with: api KEY Name VERSIONS [flexible N+]")
    parser = _Parser(file)
    key = parser.number(words[1], 1)
    span = parser.versions(words[3], 1, OPEN)
    flexible = OPEN
    if len(words) == 6:
        if words[4] != "flexible":
            fail(file, 1, f"'{words[4]}' is not 'flexible'")
        flexible = parser.versions(words[5], 1, OPEN).first
    if span.last == OPEN:
        fail(file, 1, f"'{words[3]}': the versions of an API end somewhere")
    return ApiRange(key, words[2], span.first, span.last, flexible, file)


class _Parser:
    def __init__(self, file: str) -> None:
        self.file = file
        self.api: ApiRange | None = None
        self.heads: list[_Head] = []
        self.uses: list[HeaderUse] = []
        self.open: list[_Draft] = []

    def parse(self, text: str) -> LayoutFile:
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.partition("#")[0].rstrip()
            if not line:
                continue
            if "\t" in line:
                fail(self.file, number, "a tab: columns and indentation are made of spaces")
            indent = len(line) - len(line.lstrip())
            if indent:
                self.field_line(line.split(), indent, number)
            else:
                self.open = []
                self.head_line(line.split(), line, number)
        messages = tuple(self.message(head) for head in self.heads)
        return LayoutFile(self.file, self.api, messages, tuple(self.uses))

    def head_line(self, words: list[str], line: str, number: int) -> None:
        match words:
            case ["api", *_]:
                if number != 1:
                    fail(self.file, number, "'api' stands on the first line of a file")
                self.api = parse_api_line(line, self.file)
            case ["request" | "response" as section]:
                api = self.need_api(number)
                versions = tuple(range(api.min_version, api.max_version + 1))
                self.heads.append(
                    _Head(section, api.name, versions, api.flexible_from, False, None, "", number)
                )
            case ["alternate", "request" | "response" as section, versions_, "releases", releases]:
                api = self.need_api(number)
                only = self.version_list(versions_, number)
                self.heads.append(
                    _Head(section, api.name, only, api.flexible_from, False, None, releases, number)  #
                    type: ignore[arg-type]
                )
            case ["schema" | "header" as section, name, versions_, *rest]:
                self.schema_line(section, name, self.version_list(versions_, number), rest, number)
            case ["use", *rest]:
                self.use_line(rest, number)
            case _:
                fail(self.file, number, f"'{words[0]}' begins nothing that is known here")

    def schema_line(
        self, section: str, name: str, versions: tuple[int, ...], rest: list[str], number: int
    ) -> None:
        head = _Head(section, name, versions, OPEN, False, None, "", number)  # type: ignore[arg-type]
        words = iter(rest)
        for word in words:
            if word == "flexible":
                head.flexible_from = self.versions(next(words, ""), number, OPEN).first
            elif word == "type":
                head.number = self.number(next(words, ""), number)
            elif word == "zigzag":
                head.zigzag = True
            else:
                fail(self.file, number, f"'{word}' is none of: flexible N+, type N, zigzag")
        self.heads.append(head)

    def use_line(self, words: list[str], number: int) -> None:
        match words:
            case ["request" | "response" as side, version, "classic" | "flexible" as encoding]:
                use = HeaderUse(
                    int(side == "response"), self.number(version, number), encoding == "flexible", None, None
                )
            case ["request" | "response" as side, version, "api", key, span]:
                use = HeaderUse(
                    int(side == "response"),
                    self.number(version, number),
                    None,
                    self.number(key, number),
                    self.versions(span, number, OPEN),
                )
            case _:
                fail(
                    self.file,
                    number,
                    "use request|response N followed by classic, flexible or: api KEY VERSIONS",
                )
        self.uses.append(use)

    def field_line(self, words: list[str], indent: int, number: int) -> None:
        if not self.heads:
            fail(
                self.file, number, f"'{words[0]}' is indented but stands under no request, response or schema"
            )
        draft = self.draft(words, indent, number)
        while self.open and self.open[-1].indent > indent:
            self.open.pop()
        siblings = self.heads[-1].drafts
        if self.open:
            last = self.open[-1]
            if last.indent == indent:
                self.open.pop()
                siblings = self.open[-1].children if self.open else siblings
            else:
                if last.type != "struct":
                    fail(
                        self.file,
                        number,
                        f"'{draft.name}' is indented under '{last.name}', which is no [] or {{}}",
                    )
                siblings = last.children
        if siblings and siblings[0].indent != indent:
            fail(
                self.file,
                number,
                f"'{draft.name}' is indented by {indent}, its siblings by {siblings[0].indent}",
            )
        siblings.append(draft)
        self.open.append(draft)

    def draft(self, words: list[str], indent: int, number: int) -> _Draft:
        if len(words) < 2:
            fail(self.file, number, f"'{words[0]}' has no type")
        name, type_word, *rest = words
        if not _NAME.match(name):
            fail(self.file, number, f"'{name}' is not a snake_case name")
        kind, array, null = self.type(type_word, number)
        draft = _Draft(indent, number, name, kind, array, null, Meaning.NONE, "", None, None, None)
        if rest and _MEANING.match(rest[0]) and rest[0] != "tag":
            draft.meaning, draft.enum = self.meaning(rest.pop(0), number)
        if rest and rest[0][0].isdigit():
            draft.versions = rest.pop(0)
        if len(rest) >= 2 and rest[0] == "tag":
            draft.tag = self.number(rest[1], number)
            rest = rest[2:]
            if len(rest) == 2 and rest[0] == "=":
                draft.default = rest[1]
                rest = []
        if rest:
            fail(self.file, number, f"'{rest[0]}' is neither a meaning, versions nor a tag in its place")
        return draft

    def type(self, word: str, number: int) -> tuple[str, bool, str | None]:
        found = _TYPE.match(word)
        base, null = (found[1], found[2]) if found else (word, None)
        array = base.startswith("[")
        kind = "struct" if base in ("[]", "{}") else base.strip("[]")
        if not found or (kind != "struct" and kind not in _TYPES):
            hint = get_close_matches(kind, _TYPES, 1)
            fail(
                self.file, number, f"'{word}' is not a type" + (f" (did you mean {hint[0]}?)" if hint else "")
            )
        if array and kind not in FIXED and kind not in ("struct", "string", "bytes"):
            fail(
                self.file,
                number,
                f"'{word}': an array's elements are structs, strings, bytes or of fixed size",
            )
        if null and not array and kind not in SIZED and kind != "struct":
            fail(self.file, number, f"'{word}': a {kind} cannot be null")
        return kind, array, null

    def meaning(self, word: str, number: int) -> tuple[Meaning, str]:
        found = _MEANING.match(word)
        meaning = WORDS.get(found[1]) if found else None
        enum = (found[2] or "") if found else ""
        if meaning is None:
            hint = get_close_matches(word, WORDS, 1)
            fail(
                self.file,
                number,
                f"'{word}' is not a meaning" + (f" (did you mean {hint[0]}?)" if hint else ""),
            )
        if (meaning is Meaning.ENUM) != bool(enum):
            fail(self.file, number, f"'{word}': an enum is written enum.NAME, and only enums have a name")
        return meaning, enum

    def message(self, head: _Head) -> Message:
        span = Versions(head.versions[0], head.versions[-1])
        fields = tuple(self.field(draft, span) for draft in head.drafts)
        return Message(
            head.section,
            head.name,
            head.versions,
            head.flexible_from,
            head.zigzag,
            head.number,
            head.releases,
            fields,
            self.file,
            head.line,
        )

    def field(self, draft: _Draft, parent: Versions) -> Field:
        versions = parent
        if draft.versions is not None:
            versions = self.versions(draft.versions, draft.line, parent.last)
        nullable = None
        if draft.null is not None:
            nullable = versions
            if len(draft.null) > 1:
                nullable = self.versions(draft.null[1:], draft.line, versions.last)
        children = tuple(self.field(child, versions) for child in draft.children)
        return Field(
            draft.name,
            draft.type,
            draft.array,
            nullable,
            draft.meaning,
            draft.enum,
            versions,
            draft.tag,
            draft.default,
            children,
            draft.line,
        )

    def need_api(self, number: int) -> ApiRange:
        if self.api is None:
            fail(self.file, number, "a request or response needs an api line at the top of the file")
        return self.api

    def number(self, word: str, number: int) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= 10):
            fail(self.file, number, f"'{word}' is not a number")
        return int(word)

    def versions(self, word: str, number: int, last: int) -> Versions:
        found = _RANGE.match(word)
        if not found:
            fail(self.file, number, f"'{word}' is not a version range (3, 3+ or 3-7)")
        first = int(found[1])
        if found[2]:
            return Versions(first, last)
        return Versions(first, int(found[3]) if found[3] else first)

    def version_list(self, word: str, number: int) -> tuple[int, ...]:
        spans = [self.versions(part, number, OPEN) for part in word.split(",")]
        versions = sorted(
            {v for span in spans for v in range(span.first, min(span.last, span.first + 999) + 1)}
        )
        if any(span.last == OPEN for span in spans) or not versions:
            fail(self.file, number, f"'{word}': the versions of a message are listed or end somewhere")
        return tuple(versions)
