"""A release's definitions, written into a folder of layouts; what needs a human comes back as lines."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.drift import (
    Definition,
    Shape,
    compare,
    message_of,
    read_definitions,
    shape_differences,
    shapes_of,
    snake_case,
)
from kwsniff.layout.meaning import WORDS, Meaning
from kwsniff.layout.model import OPEN, Field, Message
from tests.layout.release.merge import Merge
from tests.layout.release.tables import (
    Entry,
    add_errors,
    add_release,
    is_newest,
    read_errors,
    spoken_before,
)
from tests.layout.release.text import Block, Node, block_at, join, list_text, read, split, write

_SECTIONS = ("request", "response")
_TEXTS = ("string", "bytes", "records")
_AGREEING = 3
"""APIs that must agree on what a name and type means before a new field is given that meaning."""

MEANINGS = "meanings of new fields (third column)"
BYTES = "new bytes fields: is a schema inside? (meaning schema, and its layout)"
NAMES = "texts and bytes that names.txt does not have"
TRAITS = "new APIs: traits on the first line"
DROPPED = "APIs that it no longer speaks"
ERRORS = "new error codes: explain them in errors.txt and causes.txt"
CHANGED = "other bytes under the same version: earlier ones stay as an alternate"
RENAMED = "renamed fields"
SCHEMAS = "new schemas: who reads them?"
ODD = "to be looked at"


class Update:
    """`notes`: what needs a human, by kind."""

    def __init__(self, layouts: Path, definitions: Path, release: str) -> None:
        self.layouts = layouts
        self.release = release
        self.catalog = Catalog(layouts)
        self.notes: dict[str, list[str]] = defaultdict(list)
        self._folder = definitions
        self._definitions = list(read_definitions(definitions))
        if not self._definitions:
            raise LayoutError(f"{definitions}: no message definitions in this folder")
        self._meanings = _meanings(self.catalog)
        self._newest = is_newest(self.catalog.releases.names, release)
        self._blocks: dict[str, list[Block]] = {}

    def run(self, errors: str = "") -> None:
        """Write everything. `errors`: lines of code, name and whether it is retriable."""
        new: dict[int, dict[str, Definition]] = defaultdict(dict)
        for definition in self._definitions:
            message = message_of(self.catalog, definition)
            if message is not None:
                self._edit(definition, message)
            elif definition.kind in _SECTIONS and definition.api_key is not None:
                new[definition.api_key][definition.kind] = definition
            else:
                self._add_schema(definition)
        for file, blocks in self._blocks.items():
            (self.layouts / file).write_text(join(blocks), "utf-8")
        for key, both in sorted(new.items()):
            self._add_api(key, both)
        self._add_release()
        self._add_errors(read_errors(errors))
        if self._newest:
            self.notes[ODD] += compare(Catalog(self.layouts), self._folder)[0]
        self.notes = {kind: list(dict.fromkeys(lines)) for kind, lines in self.notes.items() if lines}

    def lines(self) -> list[str]:
        """The notes as text."""
        return [
            text
            for kind, lines in self.notes.items()
            for text in (f"{kind}:", *(f"    {each}" for each in lines))
        ]

    def _edit(self, definition: Definition, message: Message) -> None:
        block = block_at(self._text(message.file), message.line)
        nodes = read(block, message.versions)
        before = copy.deepcopy(nodes)
        changed, added = self._work(definition, message)
        if not changed and not added:
            return
        merge = Merge()
        for version in changed:
            self._keep_old(definition, message, before, version)
        # Newest first: it has the neighbours between which a changed field stands.
        for version in (*reversed(changed), *added):
            merge.version(nodes, version, definition.versions[version][1])
        versions = sorted({*message.versions, *added})
        flexible = [version for version in added if definition.versions[version][0]]
        self._head(block, message, versions, flexible)
        self._note_fields(definition.name, merge)
        block.body = write(nodes, versions)

    def _work(self, definition: Definition, message: Message) -> tuple[list[int], list[int]]:
        """Versions that are other than in the layout, and versions that are not in it."""
        added = sorted(set(definition.versions) - set(message.versions))
        changed = [
            version
            for version, (_, shapes) in definition.versions.items()
            if version in message.versions and shapes_of(message.fields, version) != shapes
        ]
        if changed and not self._newest:
            text = list_text(changed)
            self.notes[ODD].append(f"{definition.name} {text} is not as in newer releases: not changed")
            changed = []
        return changed, added

    def _keep_old(
        self, definition: Definition, message: Message, before: Sequence[Node], version: int
    ) -> None:
        """An alternate, where a reader of the new bytes cannot read the earlier ones."""
        ours = _untagged(shapes_of(message.fields, version))
        theirs = _untagged(definition.versions[version][1])
        if not list(shape_differences(ours, theirs, names=False)):
            return
        key = definition.api_key if definition.kind in _SECTIONS else None
        releases = spoken_before(self.catalog.releases, self.release, -1 if key is None else key, version)
        what = definition.kind if key is not None else f"schema {definition.name}"
        flexible = f" flexible {version}+" if key is None and version >= message.flexible_from else ""
        head = f"alternate {what} {version}{flexible} releases {releases}"
        blocks = self._text(message.file)
        block = block_at(blocks, message.line)
        old = [each for each in (_in_version(node, version) for node in before) if each]
        blocks.insert(blocks.index(block) + 1, Block(head, write(old, {version}), block.tail))
        block.tail = [""]
        self.notes[CHANGED].append(f"{definition.name} {version}: {head}")

    def _head(self, block: Block, message: Message, versions: Sequence[int], flexible: Sequence[int]) -> None:
        if message.section in _SECTIONS:
            block = self._text(message.file)[1]
        words = block.head.split()
        at = {"api": 3, "schema": 2, "header": 2}[words[0]]
        words[at] = list_text(versions)
        if message.flexible_from == OPEN and flexible and "flexible" not in words:
            words[at + 1 : at + 1] = ["flexible", f"{flexible[0]}+"]
        block.head = " ".join(words)

    def _add_api(self, key: int, both: Mapping[str, Definition]) -> None:
        request, response = both.get("request"), both.get("response")
        if request is None or response is None or request.versions.keys() != response.versions.keys():
            self.notes[ODD].append(f"API {key}: its request and response do not have the same versions")
            return
        name = request.name.removesuffix("Request")
        flexible = [version for version, (flag, _) in request.versions.items() if flag]
        head = f"api {key} {name} {list_text(request.versions)}"
        lines = [head + (f" flexible {flexible[0]}+" if flexible else "")]
        for definition in (request, response):
            lines += ["", definition.kind, *self._new_fields(definition)]
        path = self.layouts / f"{key:02d}_{snake_case(name)}.layout"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        self.notes[TRAITS].append(f"{path.name} (listeners: {', '.join(request.listeners) or 'none'})")

    def _add_schema(self, definition: Definition) -> None:
        module = {"message": "clients"}.get(definition.module, definition.module).replace("-", "_")
        flexible = [version for version, (flag, _) in definition.versions.items() if flag]
        head = f"schema {definition.name} {list_text(definition.versions)}"
        head += f" flexible {flexible[0]}+" if flexible else ""
        head += "" if definition.api_key is None else f" type {definition.api_key}"
        file = f"{module}.layout"
        if not (self.layouts / file).exists():
            self._blocks.setdefault(file, [Block("", [], [f"# Schemas of {module}."])])
        blocks = self._text(file)
        if not blocks[-1].tail or blocks[-1].tail[-1]:
            blocks[-1].tail.append("")
        blocks.append(Block(head, self._new_fields(definition)))
        self.notes[SCHEMAS].append(f"{definition.name} in {file}")

    def _new_fields(self, definition: Definition) -> list[str]:
        nodes: list[Node] = []
        merge = Merge()
        for version, (_, shapes) in definition.versions.items():
            merge.version(nodes, version, shapes)
        self._note_fields(definition.name, merge)
        return write(nodes, definition.versions)

    def _note_fields(self, where: str, merge: Merge) -> None:
        """Every new field is for a human; those whose name has one meaning everywhere have it already."""
        self.notes[RENAMED] += [f"{where} {path}/{old} -> {new}" for path, old, new in merge.renamed]
        for path, node in merge.added:
            node.meaning = self._meanings.get((node.name, node.type, node.array), "")
            word = f", written: {node.meaning}" if node.meaning else ""
            self.notes[MEANINGS].append(f"{where} {path} ({_type_text(node)}{word})")
            if node.type == "bytes" and not node.meaning:
                self.notes[BYTES].append(f"{where} {path}")
            kind = node.name, WORDS.get(node.meaning, Meaning.NONE)
            if node.type in _TEXTS and kind not in self.catalog.names.kinds:
                self.notes[NAMES].append(f"{node.name} {node.meaning or '-'}")

    def _add_release(self) -> None:
        spoken: dict[int, Entry] = {}
        for each in self._definitions:
            if each.kind == "request" and each.api_key is not None:
                first, last = min(each.versions), max(each.versions)
                hidden = each.unstable and first < last
                spoken[each.api_key] = (first, last), (first, last - 1) if hidden else None
        path = self.layouts / "releases.tsv"
        text = path.read_text("utf-8")
        table = self.catalog.releases
        older = [name for name in table.names if is_newest([name], self.release) and name != self.release]
        gone = table.speaks(older[-1]).keys() - spoken.keys() if older else ()
        self.notes[DROPPED] += [self.catalog.apis[key].name for key in sorted(gone)]
        path.write_text(add_release(text, self.release, spoken), "utf-8")

    def _add_errors(self, errors: Mapping[int, tuple[str, bool]]) -> None:
        known = self.catalog.errors
        path = self.layouts / "errors.txt"
        new = sorted(errors.keys() - known.keys())
        if new:
            text = add_errors(path.read_text("utf-8"), known, self.release, errors)
            path.write_text(text, "utf-8")
        self.notes[ERRORS] += [f"{code} {errors[code][0]}" for code in new]
        for code in sorted(errors.keys() & known.keys()):
            if errors[code] != (known[code].name, known[code].retriable):
                self.notes[ODD].append(f"error {code} is {errors[code]}, in errors.txt {known[code][1:3]}")

    def _text(self, file: str) -> list[Block]:
        if file not in self._blocks:
            self._blocks[file] = split((self.layouts / file).read_text("utf-8"))
        return self._blocks[file]


def _untagged(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    return tuple(replace(shape, children=_untagged(shape.children)) for shape in shapes if shape.tag is None)


def _in_version(node: Node, version: int) -> Node | None:
    if version not in node.versions:
        return None
    children = [each for each in (_in_version(child, version) for child in node.children) if each]
    return replace(node, versions={version}, nulls=node.nulls & {version}, children=children)


def _type_text(node: Node) -> str:
    return f"[{node.type}]" if node.array else node.type


def _meanings(catalog: Catalog) -> dict[tuple[str, str, bool], str]:
    """What a name and type means in the newest version of several APIs, where they agree."""
    words: dict[tuple[str, str, bool], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for key in catalog.apis:
        layout = catalog.layout(key)
        for message in layout.messages if layout else ():
            for field in _live(message.fields, message.span.last):
                word = f"enum.{field.enum}" if field.meaning is Meaning.ENUM else field.meaning.name.lower()
                words[field.name, field.type, field.array][word].add(key)
    return {
        kind: next(iter(found)).replace("none", "")
        for kind, found in words.items()
        if len(found) == 1 and len(next(iter(found.values()))) >= _AGREEING
    }


def _live(fields: Sequence[Field], version: int) -> Iterator[Field]:
    for field in fields:
        if version in field.versions:
            yield field
            yield from _live(field.children, version)
