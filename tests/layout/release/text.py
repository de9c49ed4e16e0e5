"""Layout files as text that keeps its comments: blocks, and the fields of a block with sets of versions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import OPEN
from kwsniff.layout.tokens import Draft, read_field, read_versions

_INDENT = 4


@dataclass(slots=True)
class Node:
    """One line of a block, in the versions in which it is live."""

    name: str
    type: str
    array: bool
    tag: int | None
    default: str | None
    versions: set[int]
    nulls: set[int]
    meaning: str = ""
    children: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """A line at the margin, its fields, and what follows: comments and empty lines. `line`: where it was."""

    head: str
    body: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    line: int = 0


def split(text: str) -> list[Block]:
    """The blocks of a file. Its first one is the text before the first line at the margin, without a head."""
    blocks = [Block("")]
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            blocks[-1].tail.append(line)
        elif line[0] != " ":
            blocks.append(Block(line, line=number))
        else:
            blocks[-1].body += [*blocks[-1].tail, line]
            blocks[-1].tail = []
    return blocks


def join(blocks: Sequence[Block]) -> str:
    """The text of a file."""
    lines = [line for each in blocks for line in (each.head, *each.body, *each.tail)]
    return "\n".join(lines[1:]).rstrip("\n") + "\n"


def block_at(blocks: Sequence[Block], line: int) -> Block:
    """The block whose head was on a line."""
    return next(block for block in blocks if block.line == line)


def read(block: Block, versions: Collection[int]) -> list[Node]:
    """The fields of a block in a message's versions."""
    nodes: list[Node] = []
    open_structs: list[tuple[int, list[Node], set[int]]] = [(0, nodes, set(versions))]
    for number, line in enumerate(block.body, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        indent = len(line) - len(line.lstrip())
        while open_structs[-1][0] >= indent:
            open_structs.pop()
        _, siblings, live = open_structs[-1]
        node = _node(read_field(block.head, words, indent, number), live)
        siblings.append(node)
        open_structs.append((indent, node.children, node.versions))
    return nodes


def _node(draft: Draft, live: set[int]) -> Node:
    versions = _within(draft.versions, live)
    null = draft.null
    word = "" if draft.meaning is Meaning.NONE else draft.meaning.name.lower()
    return Node(
        draft.name,
        draft.type,
        draft.array,
        draft.tag,
        draft.default,
        versions,
        set() if null is None else _within(null[1:] or None, versions),
        f"enum.{draft.enum}" if draft.meaning is Meaning.ENUM else word,
    )


def _within(text: str | None, live: set[int]) -> set[int]:
    if text is None:
        return set(live)
    span = read_versions("", text, 0, OPEN)
    return {version for version in live if version in span}


def write(nodes: Sequence[Node], versions: Collection[int]) -> list[str]:
    """The lines of a block, in columns. A field that comes back after a gap takes two lines."""
    rows = list(_rows(nodes, set(versions), 1))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width]
        lines.append("  ".join(cells).rstrip())
    return lines


def _rows(nodes: Sequence[Node], parent: set[int], depth: int) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        for run in _runs(node.versions, parent):
            span = "" if run == parent else range_text(run, parent)
            tag = "" if node.tag is None else f"tag {node.tag}"
            if node.default is not None:
                tag += f" = {node.default}"
            yield " " * _INDENT * depth + node.name, _type(node, run), node.meaning, span, tag
            yield from _rows([_restricted(child, run) for child in node.children], run, depth + 1)


def _restricted(node: Node, versions: set[int]) -> Node:
    return replace(node, versions=node.versions & versions, nulls=node.nulls & versions)


def _type(node: Node, versions: set[int]) -> str:
    if node.type == "struct":
        base = "[]" if node.array else "{}"
    else:
        base = f"[{node.type}]" if node.array else node.type
    nulls = node.nulls & versions
    if not nulls:
        return base
    return f"{base}?" if nulls == versions else f"{base}?{range_text(nulls, versions)}"


def _runs(versions: set[int], parent: set[int]) -> Iterator[set[int]]:
    run: set[int] = set()
    for version in sorted(parent):
        if version in versions:
            run.add(version)
        elif run:
            yield run
            run = set()
    if run:
        yield run


def range_text(versions: Collection[int], parent: Collection[int]) -> str:
    """A run of the parent's versions as the notation writes it."""
    first, last = min(versions), max(versions)
    if last == max(parent):
        return str(first) if first == last == min(parent) else f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def list_text(versions: Collection[int]) -> str:
    """The versions of a message: 0-4, or 0,2 where it skips some."""
    runs = _runs(set(versions), set(range(max(versions) + 1)))
    return ",".join(str(min(run)) if len(run) == 1 else f"{min(run)}-{max(run)}" for run in runs)
