"""What a version of a definition says, merged into the fields of a layout."""

from __future__ import annotations

from collections.abc import Sequence

from kwsniff.layout.drift import Shape
from tests.layout.release.text import Node


class Merge:
    """Merges version after version into one message; `added` and `renamed` say what changed."""

    def __init__(self) -> None:
        self.added: list[tuple[str, Node]] = []
        self.renamed: list[tuple[str, str, str]] = []

    def version(self, nodes: list[Node], version: int, shapes: Sequence[Shape], path: str = "") -> None:
        """Make the fields that are live in a version those of the definition."""
        self._rename(nodes, version, shapes, path)
        place = 0
        kept: list[Node] = []
        for at, shape in enumerate(shapes):
            node = _find(nodes, place, shape, version, kept)
            if node is None:
                node = _new(shape)
                nodes.insert(_place(nodes, place, shapes[at + 1 :], version), node)
                self.added.append((f"{path}/{node.name}", node))
            node.versions.add(version)
            (node.nulls.add if shape.null else node.nulls.discard)(version)
            self.version(node.children, version, shape.children, f"{path}/{node.name}")
            kept.append(node)
            place = _index(nodes, node) + 1
        for node in list(nodes):
            if not any(node is one for one in kept):
                _drop(node, version)
                if not node.versions:
                    nodes.remove(node)

    def _rename(self, nodes: Sequence[Node], version: int, shapes: Sequence[Shape], path: str) -> None:
        """Fields in the same place, of the same type, under another name."""
        live = _wire_order(nodes, version)
        if [_key(node)[1:] for node in live] != [_shape_key(shape)[1:] for shape in shapes]:
            return
        for node, shape in zip(live, shapes, strict=True):
            if node.name != shape.name:
                self.renamed.append((path, node.name, shape.name))
                node.name = shape.name


def _wire_order(nodes: Sequence[Node], version: int) -> list[Node]:
    live = [node for node in nodes if version in node.versions]
    return sorted(live, key=lambda node: -1 if node.tag is None else node.tag)


def _key(node: Node) -> tuple[object, ...]:
    kind = "string" if node.type == "string16" else node.type
    return node.name, kind, node.array, node.tag, node.default


def _shape_key(shape: Shape) -> tuple[object, ...]:
    return shape.name, shape.type, shape.array, shape.tag, shape.default


def _find(nodes: Sequence[Node], place: int, shape: Shape, version: int, kept: Sequence[Node]) -> Node | None:
    """The field of a shape: live in this version, or in the nearest one, and not before fields that
    precede it."""
    found = [
        node
        for node in nodes[place if shape.tag is None else 0 :]
        if _key(node) == _shape_key(shape) and not any(node is one for one in kept)
    ]
    return min(found, key=lambda node: min(abs(version - one) for one in node.versions), default=None)


def _index(nodes: Sequence[Node], node: Node) -> int:
    return next(at for at, one in enumerate(nodes) if one is node)


def _place(nodes: Sequence[Node], place: int, following: Sequence[Shape], version: int) -> int:
    """Where a new field goes: before the next one that is there, else before tagged fields or at the end."""
    for shape in following:
        node = _find(nodes, place, shape, version, ())
        if node is not None:
            return _index(nodes, node)
    tagged = (at for at, node in enumerate(nodes) if at >= place and node.tag is not None)
    return next(tagged, len(nodes))


def _new(shape: Shape) -> Node:
    return Node(shape.name, shape.type, shape.array, shape.tag, shape.default, set(), set())


def _drop(node: Node, version: int) -> None:
    node.versions.discard(version)
    node.nulls.discard(version)
    for child in list(node.children):
        _drop(child, version)
        if not child.versions:
            node.children.remove(child)
