"""Layout text to model. The notation is described in dissectors/README.md.

Raises ``LayoutError`` with ``file:line`` and the invalid word.
"""

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from kwsniff.layout.model import OPEN, ApiRange, Field, HeaderUse, LayoutFile, Message, Section, Versions
from kwsniff.layout.tokens import Draft, fail, read_field, read_number, read_version_list, read_versions
from kwsniff.layout.traits import read_traits

#: Keys are int16 on the wire. The limit for versions is far above those of any release.
MOST_KEY, MOST_VERSION = 32767, 999


@dataclass(slots=True)
class _Head:
    """The first line of a message."""

    section: Section
    name: str
    versions: tuple[int, ...]
    flexible_from: int
    zigzag: bool
    number: int | None
    releases: str
    line: int
    drafts: list[Draft] = dataclass_field(default_factory=list)


def parse_layout(text: str, file: str) -> LayoutFile:
    """Parse one layout file; ``file`` is the name used in error messages."""
    return _Parser(file).parse(text)


def parse_api_line(line: str, file: str) -> ApiRange:
    """The first line of an API's file, which is all that the index of the catalog reads."""
    words = line.partition("#")[0].split()
    if len(words) < 4 or words[0] != "api":
        fail(file, 1, "an API's file begins with: api KEY Name VERSIONS [flexible N+] [traits]")
    key = read_number(file, words[1], 1)
    if key > MOST_KEY:
        fail(file, 1, f"'{words[1]}': an api key is at most {MOST_KEY}")
    span = read_versions(file, words[3], 1, OPEN)
    if span.last == OPEN and words[3].endswith("+"):
        fail(file, 1, f"'{words[3]}': the versions of an API need an upper end")
    if span.last > MOST_VERSION:
        fail(file, 1, f"'{words[3]}': a version is at most {MOST_VERSION}")
    flexible, rest = OPEN, words[4:]
    if rest[:1] == ["flexible"]:
        first = rest[1] if len(rest) > 1 else ""
        flexible = read_versions(file, first, 1, OPEN).first
        if not first.endswith("+"):
            fail(file, 1, f"'{first}': flexible from a version on, as in 2+")
        rest = rest[2:]
    return ApiRange(key, words[2], span.first, span.last, flexible, file, read_traits(file, rest))


class _Parser:
    def __init__(self, file: str) -> None:
        self.file = file
        self.api: ApiRange | None = None
        self.heads: list[_Head] = []
        self.uses: list[HeaderUse] = []
        self.open: list[Draft] = []

    def parse(self, text: str) -> LayoutFile:
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.partition("#")[0].rstrip()
            if not line:
                continue
            if "\t" in line:
                fail(self.file, number, "a tab: use spaces for columns and indentation")
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
                    fail(self.file, number, "'api' belongs on the first line of a file")
                self.api = parse_api_line(line, self.file)
            case ["request" | "response" as section]:
                api = self.need_api(number)
                versions = tuple(range(api.min_version, api.max_version + 1))
                self.heads.append(
                    _Head(section, api.name, versions, api.flexible_from, False, None, "", number)
                )
            case ["alternate", "request" | "response" as section, versions_, "releases", releases]:
                api = self.need_api(number)
                only = read_version_list(self.file, versions_, number)
                if not Versions(only[0], only[-1]).within(api.versions):
                    fail(self.file, number, f"'{versions_}': {api.name} has versions {api.versions}")
                self.heads.append(
                    _Head(section, api.name, only, api.flexible_from, False, None, releases, number)
                )
            case ["alternate", "schema", name, versions_, *rest]:
                only = read_version_list(self.file, versions_, number)
                self.schema_line("schema", name, only, rest, number)
                if not self.heads[-1].releases:
                    fail(self.file, number, f"'{name}': an alternate needs its releases")
            case ["schema" | "header" as section, name, versions_, *rest]:
                self.schema_line(section, name, read_version_list(self.file, versions_, number), rest, number)
            case ["use", *rest]:
                self.use_line(rest, number)
            case _:
                fail(
                    self.file,
                    number,
                    f"unknown line '{words[0]}' (expected: api, request, response, schema, header or use)",
                )

    def schema_line(
        self, section: str, name: str, versions: tuple[int, ...], rest: list[str], number: int
    ) -> None:
        head = _Head(section, name, versions, OPEN, False, None, "", number)  # type: ignore[arg-type]
        words = iter(rest)
        for word in words:
            if word == "flexible":
                head.flexible_from = read_versions(self.file, next(words, ""), number, OPEN).first
            elif word == "type":
                head.number = read_number(self.file, next(words, ""), number)
            elif word == "releases":
                head.releases = next(words, "")
            elif word == "zigzag":
                head.zigzag = True
            else:
                fail(
                    self.file,
                    number,
                    f"unknown word '{word}' (expected: flexible N+, type N, zigzag, releases R)",
                )
        self.heads.append(head)

    def use_line(self, words: list[str], number: int) -> None:
        match words:
            case ["request" | "response" as side, version, "classic" | "flexible" as encoding]:
                use = HeaderUse(
                    int(side == "response"),
                    read_number(self.file, version, number),
                    encoding == "flexible",
                    None,
                    None,
                )
            case ["request" | "response" as side, version, "api", key, span]:
                use = HeaderUse(
                    int(side == "response"),
                    read_number(self.file, version, number),
                    None,
                    read_number(self.file, key, number),
                    read_versions(self.file, span, number, OPEN),
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
            fail(self.file, number, f"'{words[0]}' is indented, but not under a request, response or schema")
        draft = read_field(self.file, words, indent, number)
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
                        f"'{draft.name}' is indented under '{last.name}', which is not [] or {{}}",
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

    def field(self, draft: Draft, parent: Versions) -> Field:
        versions = parent
        if draft.versions is not None:
            versions = read_versions(self.file, draft.versions, draft.line, parent.last)
        nullable = None
        if draft.null is not None:
            nullable = versions
            if len(draft.null) > 1:
                nullable = read_versions(self.file, draft.null[1:], draft.line, versions.last)
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
